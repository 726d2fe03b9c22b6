import type { ImageNames } from './engine-settings.js'

/** One way to an image: it is here already, or is pulled from a registry, or made on this machine. */
export interface ImageStep {
  readonly way: 'here' | 'pull' | 'make'
  readonly image: string
}

export interface Allowed {
  readonly pull: boolean
  readonly make: boolean
}

/**
 * The ways to an engine's image; the first that succeeds counts. Those that cost nothing come first: a machine that can pull
 * nothing and has the home-made image does not wait for a registry in every run. A configured image is not replaced by another.
 */
export function imageSteps({ configured, official }: ImageNames, homeMade: string | undefined, allowed: Allowed): readonly ImageStep[] {
  const step = (way: ImageStep['way'], image: string | undefined, isAllowed = true): ImageStep[] =>
    image !== undefined && isAllowed ? [{ way, image }] : []

  if (configured !== undefined) return [...step('here', configured), ...step('pull', configured, allowed.pull)]
  return [
    ...step('here', official),
    ...step('here', homeMade),
    ...step('pull', official, allowed.pull),
    ...step('make', homeMade, allowed.make),
  ]
}

import type { ImageNames } from './engine-settings.js'

/** One way to an image: it is here already, or is pulled from a registry, or made on this machine. */
export interface ImageStep {
  readonly way: 'here' | 'pull' | 'make'
  readonly image: string
}

/**
 * The ways to an engine's image, the first that succeeds counts. Those that cost nothing come first: a machine that can pull
 * nothing and has the home-made image does not wait for a registry at every run. An image that somebody asked for by name is
 * not replaced by another.
 */
export function imageSteps(names: ImageNames, may: { readonly pull: boolean; readonly make: boolean }): readonly ImageStep[] {
  const { configured, official, homeMade } = names
  const here = (image: string): ImageStep => ({ way: 'here', image })
  const pull = (image: string): ImageStep[] => (may.pull ? [{ way: 'pull', image }] : [])
  const make = (image: string): ImageStep[] => (may.make ? [{ way: 'make', image }] : [])

  if (configured === homeMade) return [here(homeMade), ...make(homeMade)]
  if (configured !== undefined) return [here(configured), ...pull(configured)]
  return [here(official), here(homeMade), ...pull(official), ...make(homeMade)]
}

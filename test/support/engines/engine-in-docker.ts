import { announced, announceEngine, secondsSince } from './announced.js'
import type { ContainerPlan, Docker } from './docker.js'
import type { EngineSettings, ImageNames } from './engine-settings.js'
import { engineSettings } from './engine-settings.js'
import type { Script } from './home-made-image.js'
import { isHomeMade } from './home-made-image.js'
import type { ImageStep } from './image-steps.js'
import { imageSteps } from './image-steps.js'
import { makeImage, whyNoSetUp } from './machine.js'
import { EngineFailed, firstOf, NoEngine } from './no-engine.js'
import type { StartedEngine } from './own-engine.js'
import { untilItAnswers } from './own-engine.js'

/** How to run the server in an image. */
export interface ImageServer {
  readonly readyLine: RegExp
  readonly innerPort: ContainerPlan['innerPort']
  readonly command: (port: number, extraArgs: readonly string[]) => readonly string[]
  /** What a new server needs before it serves. */
  readonly afterFirstStart?: (host: string, port: number) => Promise<void>
}

export interface Recipe {
  readonly name: string
  readonly images: (settings: EngineSettings) => ImageNames
  /** The image that the script makes; undefined where this machine lacks what goes into it. */
  readonly homeMade: () => string | undefined
  readonly script: Script
  readonly makingTakes: string
  readonly server: (image: { readonly isHomeMade: boolean }) => ImageServer
  readonly url: (host: string, port: number) => string
  readonly ping: (url: string) => Promise<void>
}

/** Starts servers from one image. Throws `NoEngine` where no image is to be had, without trying again, and `EngineFailed`. */
export class EngineInDocker {
  private image: Promise<string> | undefined

  constructor(private readonly recipe: Recipe) {}

  async start(findDocker: () => Promise<Docker>, extraArgs: readonly string[] = []): Promise<StartedEngine> {
    const { docker, image } = await this.prepare(findDocker)
    const { readyLine, innerPort, command, afterFirstStart } = this.recipe.server({ isHomeMade: isHomeMade(image) })
    const beganMs = performance.now()
    try {
      const { host, port, body } = await docker.start({ image, readyLine, innerPort, command: (outer) => command(outer, extraArgs) })
      const url = this.recipe.url(host, port)
      await afterFirstStart?.(host, port)
      await untilItAnswers(url, this.recipe.ping)
      const how = `Docker, ${image}`
      announceEngine(this.recipe.name, how, secondsSince(beganMs))
      return { url, how, body }
    } catch (error) {
      throw new EngineFailed(`${image} does not start in Docker: ${String(error)}`, { cause: error })
    }
  }

  /** All that takes long, so that `start` need not. */
  async prepare(findDocker: () => Promise<Docker>): Promise<{ readonly docker: Docker; readonly image: string }> {
    const docker = await this.unlessConfigured(findDocker)
    await sweep(docker)
    return { docker, image: await (this.image ??= this.unlessConfigured(() => this.findImage(docker))) }
  }

  /** An image that the environment names has to be there. */
  private async unlessConfigured<Found>(find: () => Promise<Found>): Promise<Found> {
    const { configured } = this.recipe.images(engineSettings())
    try {
      return await find()
    } catch (error) {
      if (configured === undefined || !(error instanceof NoEngine)) throw error
      throw new EngineFailed(`${configured} is configured and cannot be used: ${error.message}`, { cause: error })
    }
  }

  private async findImage(docker: Docker): Promise<string> {
    const settings = engineSettings()
    const whyNotMade = whyNoSetUp(settings)
    const allowed = { pull: !settings.foundOnly, make: whyNotMade === undefined }
    const steps = imageSteps(this.recipe.images(settings), this.recipe.homeMade(), allowed)
    const lastWord = whyNotMade === undefined ? [] : [async () => Promise.reject(new NoEngine([whyNotMade]))]
    return firstOf([...steps.map((step) => async () => this.obtain(docker, step)), ...lastWord])
  }

  private async obtain(docker: Docker, { way, image }: ImageStep): Promise<string> {
    switch (way) {
      case 'here':
        if (!(await docker.hasImage(image))) throw new NoEngine([`Docker does not have ${image}`])
        return image
      case 'pull':
        try {
          await announced(`pulling ${image}`, 'a minute', () => docker.pull(image))
          return image
        } catch (error) {
          throw new NoEngine([`${image} cannot be pulled (${String(error)})`], { cause: error })
        }
      case 'make':
        await makeImage(this.recipe.script, image, this.recipe.makingTakes)
        return image
    }
  }
}

let swept: Promise<void> | undefined

async function sweep(docker: Docker): Promise<void> {
  await (swept ??= docker.removeContainersOfGoneRuns())
}

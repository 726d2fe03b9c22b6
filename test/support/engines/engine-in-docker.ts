import { announced, announceEngine, secondsSince } from './announced.js'
import type { ContainerPlan, Docker, StartedContainer } from './docker.js'
import type { EngineSettings, ImageNames } from './engine-settings.js'
import { engineSettings } from './engine-settings.js'
import type { ImageStep } from './image-steps.js'
import { imageSteps } from './image-steps.js'
import type { Script } from './machine.js'
import { makeImage, whyNoSetUp } from './machine.js'
import { firstOf, NoEngine } from './no-engine.js'
import type { StartedEngine } from './own-engine.js'
import { untilItAnswers } from './own-engine.js'

export interface Recipe {
  readonly name: string
  readonly images: (settings: EngineSettings) => ImageNames
  /** Makes the home-made image. */
  readonly script: Script
  readonly makingTakes: string
  readonly readyLine: RegExp
  readonly innerPort: ContainerPlan['innerPort']
  readonly command: (port: number, extraArgs: readonly string[]) => readonly string[]
  readonly url: (host: string, port: number) => string
  readonly ping: (url: string) => Promise<void>
}

/** Starts servers from one image. Throws `NoEngine` where there is none to be had, without trying again. */
export class EngineInDocker {
  private image: Promise<string> | undefined

  constructor(private readonly recipe: Recipe) {}

  async start(docker: Docker, extraArgs: readonly string[] = []): Promise<StartedEngine> {
    const { name, readyLine, innerPort, command, ping } = this.recipe
    await sweep(docker)
    const image = await (this.image ??= this.findImage(docker))
    const beganMs = performance.now()
    let started: StartedContainer
    try {
      started = await docker.start({ image, readyLine, innerPort, command: (port) => command(port, extraArgs) })
    } catch (error) {
      throw new NoEngine([`${image} does not start in Docker: ${String(error)}`], { cause: error })
    }
    const url = this.recipe.url(started.host, started.port)
    await untilItAnswers(url, ping)
    const how = `Docker, ${image}`
    announceEngine(name, how, secondsSince(beganMs))
    return { url, how, body: started.body }
  }

  private async findImage(docker: Docker): Promise<string> {
    const settings = engineSettings()
    const whyNotMade = whyNoSetUp(settings)
    const may = { pull: !settings.foundOnly, make: whyNotMade === undefined }
    const steps = imageSteps(this.recipe.images(settings), may)
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

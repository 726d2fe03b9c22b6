import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { StartedTestContainer } from 'testcontainers'
import { type ContainerRuntimeClient, GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers'
import { within } from '../until.js'
import { onFreePort } from './free-port.js'
import { NoEngine } from './no-engine.js'
import type { EngineBody } from './own-engine.js'
import { isGone, stampOf } from './process-stamp.js'
import { isRemoved, removeAtTheEnd } from './remnants.js'

/** The containers of a test run carry its stamp. */
export const RUN_LABEL = 'petstore-test.run'

const DOCKER_ANSWERS_WITHIN_MS = 10_000
const CONTAINER_STARTS_WITHIN_MS = 60_000
const LOG_ENDS_WITHIN_MS = 2_000
const LOG_LINES = 20
/** A registry that is reached says something more often than this; where there is none, this is all that is lost. */
const PULL_SILENCE_MS = 20_000
const PULL_WITHIN_MS = 600_000

export interface ContainerPlan {
  readonly image: string
  readonly readyLine: RegExp
  /** The port inside the container that goes with the one outside. */
  readonly innerPort: (port: number) => number
  readonly command: (port: number) => readonly string[]
  readonly startsWithinMs?: number
}

export interface StartedContainer {
  /** Where its port is published. */
  readonly host: string
  readonly port: number
  readonly body: EngineBody
}

/** Docker as testcontainers finds it, without its reaper, whose image cannot be pulled everywhere: `remnants` does its work. */
export async function findDocker(): Promise<Docker> {
  await answersWhereConfigured(process.env['DOCKER_HOST'])
  try {
    return new Docker(await within(DOCKER_ANSWERS_WITHIN_MS, 'Docker answers', getContainerRuntimeClient()))
  } catch (error) {
    throw new NoEngine(['no Docker answers'], { cause: error })
  }
}

export class Docker {
  constructor(private readonly client: ContainerRuntimeClient) {}

  async hasImage(image: string): Promise<boolean> {
    try {
      await this.dockerode.getImage(image).inspect()
      return true
    } catch (error) {
      if (hasStatus(error, 404)) return false
      throw error
    }
  }

  /** Rejects when the image is not here in the end, as when the registry has fallen silent. */
  async pull(image: string): Promise<void> {
    const giveUp = new AbortController()
    const limit = setTimeout(() => giveUp.abort(), PULL_WITHIN_MS)
    const silence = setTimeout(() => giveUp.abort(), PULL_SILENCE_MS)
    try {
      const progress = await this.dockerode.pull(image, { abortSignal: giveUp.signal })
      progress.on('data', () => silence.refresh())
      await new Promise((resolve, reject) => progress.once('end', resolve).once('error', reject))
    } catch (error) {
      throw giveUp.signal.aborted ? new Error(`no registry answered in time`, { cause: error }) : error
    } finally {
      clearTimeout(limit)
      clearTimeout(silence)
    }
    if (!(await this.hasImage(image))) throw new Error(`${image} is not here after all`)
  }

  /** On a fixed port, because Docker would publish a container that is started again on another one. */
  async start(plan: ContainerPlan): Promise<StartedContainer> {
    const host = this.isOnThisMachine ? '127.0.0.1' : this.client.info.containerRuntime.host
    return onFreePort(async (port) => {
      const container = new PublishedContainer(plan.image)
        .publishedOn(this.isOnThisMachine ? '127.0.0.1' : '0.0.0.0', port, plan.innerPort(port))
        .withAutoCleanup(false)
        .withLabels({ [RUN_LABEL]: stampOf(process.pid) ?? '' })
        .withCommand([...plan.command(port)])
        .withWaitStrategy(Wait.forLogMessage(plan.readyLine))
        .withStartupTimeout(plan.startsWithinMs ?? CONTAINER_STARTS_WITHIN_MS)
      return { host, port, body: this.body(await startOrTellWhy(container)) }
    })
  }

  async removeContainer(id: string): Promise<void> {
    try {
      await this.dockerode.getContainer(id).remove({ force: true, v: true })
    } catch (error) {
      const isGoneOrGoing = hasStatus(error, 404) || hasStatus(error, 409)
      if (!isGoneOrGoing) throw error
    }
    isRemoved('containers', id)
  }

  /** The containers of test runs that were ended in a way that let them remove nothing. */
  async removeContainersOfGoneRuns(): Promise<void> {
    const labelled = await this.dockerode.listContainers({ all: true, filters: { label: [RUN_LABEL] } })
    const abandoned = labelled.filter(({ Labels }) => isGone(Labels[RUN_LABEL] ?? ''))
    await Promise.all(abandoned.map(({ Id }) => this.removeContainer(Id)))
  }

  private body(started: StartedTestContainer): EngineBody {
    const id = started.getId()
    const container = this.dockerode.getContainer(id)
    return {
      freeze: async () => void (await container.pause()),
      thaw: async () => void (await container.unpause()),
      kill: async () => {
        await container.kill()
        await container.wait()
      },
      startAgain: async () => void (await container.start()),
      remove: () => this.removeContainer(id),
    }
  }

  private get dockerode() {
    return this.client.container.dockerode
  }

  /** What looks like a container to testcontainers may run dockerd itself; then the address that it was given is one of ours. */
  private get isOnThisMachine(): boolean {
    const { host } = this.client.info.containerRuntime
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    return host === 'localhost' || addresses.some(({ address }) => address === host)
  }
}

class PublishedContainer extends GenericContainer {
  /** As `withExposedPorts`, which knows no address and publishes on all of them. */
  publishedOn(address: string, port: number, innerPort: number): this {
    this.createOpts.ExposedPorts = { [`${innerPort}/tcp`]: {} }
    this.hostConfig.PortBindings = { [`${innerPort}/tcp`]: [{ HostIp: address, HostPort: `${port}` }] }
    return this
  }

  protected override async containerCreated(id: string): Promise<void> {
    removeAtTheEnd('containers', id)
  }
}

/** A container that ends before it is ready is noticed at once. */
async function startOrTellWhy(container: GenericContainer): Promise<StartedTestContainer> {
  let log: Readable | undefined
  let output = ''
  container.withLogConsumer((stream) => {
    log = stream.on('data', (chunk) => (output += chunk))
  })
  try {
    return await container.start()
  } catch (error) {
    // By now the container has ended or was stopped, and so does its log.
    if (log !== undefined) await within(LOG_ENDS_WITHIN_MS, 'the log of the container ends', finished(log)).catch(() => undefined)
    const end = output.trimEnd().split('\n').slice(-LOG_LINES).join('\n')
    throw new Error(`${String(error)}; the end of its log:\n${end || '(it printed nothing)'}`, { cause: error })
  }
}

/** A Docker that somebody named is not replaced by another one, as testcontainers would. */
async function answersWhereConfigured(dockerHost: string | undefined): Promise<void> {
  const { protocol, hostname, port, pathname } = new URL(dockerHost ?? 'none:')
  if (!['unix:', 'tcp:', 'http:', 'https:'].includes(protocol)) return
  const socket = protocol === 'unix:' ? connect(pathname) : connect(Number(port), hostname)
  try {
    await within(
      DOCKER_ANSWERS_WITHIN_MS,
      'Docker answers',
      new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject)),
    )
  } catch (error) {
    throw new NoEngine([`no Docker answers at DOCKER_HOST, which is ${dockerHost}`], { cause: error })
  } finally {
    socket.destroy()
  }
}

function hasStatus(error: unknown, status: number): boolean {
  return (error as { statusCode?: unknown }).statusCode === status
}

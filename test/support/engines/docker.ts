import { spawnSync } from 'node:child_process'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { ContainerRuntimeClient, StartedTestContainer } from 'testcontainers'
import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers'
import { within } from '../until.js'
import { cleanUpAtEnd } from './cleanup.js'
import { onFreePort } from './free-port.js'
import { NoEngine } from './no-engine.js'
import type { EngineServer } from './own-engine.js'

/** Names the test run that a container belongs to: `<host name>/<pid>`. */
export const RUN_LABEL = 'petstore-test.run'

const DOCKER_TIMEOUT_MS = 10_000
const CONTAINER_START_TIMEOUT_MS = 60_000
const LOG_END_TIMEOUT_MS = 2_000
const LOG_LINES = 20
/** This script is not compiled: its path is relative to `dist`. */
const IMAGE_NAME = fileURLToPath(new URL('../../../../scripts/engines/image-name.sh', import.meta.url))

export interface ImageChoice {
  /** The environment variable that can name another image. */
  readonly variable: string
  readonly official: string
  /** The recipe in scripts/engines. */
  readonly recipe: 'mongodb-wire' | 'nginx' | 'node-build' | 'node-runtime' | 'redis'
}

export interface ContainerPlan {
  readonly image: string
  readonly readyLine: RegExp
  readonly innerPort: (port: number) => number
  readonly command: (port: number) => readonly string[]
}

export interface StartedContainer {
  readonly host: string
  readonly port: number
  readonly server: EngineServer
}

/** Throws `NoEngine` if there is no image, unless the environment names one. */
export async function findImage(choice: ImageChoice, hasImage = dockerHasImage): Promise<string> {
  const configured = process.env[choice.variable]
  if (configured) {
    const isThere = await hasImage(configured).catch((cause: unknown) => {
      throw new Error(`${choice.variable} is ${configured}, but Docker does not respond`, { cause })
    })
    if (!isThere) throw new Error(`${choice.variable} is ${configured}, but Docker does not have this image`)
    return configured
  }
  for (const image of [choice.official, getLocalImageName(choice.recipe)]) if (image && (await hasImage(image))) return image
  throw new NoEngine(`Docker has no image of ${choice.official} or petstore-test/${choice.recipe}`)
}

/** The name of the image that scripts/set-up-engines.sh builds from the current recipe; `undefined` if it cannot be built here. */
function getLocalImageName(recipe: string): string | undefined {
  const { status, stdout } = spawnSync('bash', [IMAGE_NAME, recipe], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

async function dockerHasImage(image: string): Promise<boolean> {
  const { container } = await findDocker()
  return unlessMissing(container.dockerode.getImage(image).inspect())
}

/** Starts a container on a fixed port: a random one would change when the container is killed and started again. */
export async function startContainer({ image, readyLine, innerPort, command }: ContainerPlan): Promise<StartedContainer> {
  const docker = await findDocker()
  const { host } = docker.info.containerRuntime
  return onFreePort(async (port) => {
    const container = new LocalContainer(image)
      .withPort(host, port, innerPort(port))
      .withAutoCleanup(false) // Its cleanup needs one more image, which not every machine can pull.
      .withLabels({ [RUN_LABEL]: `${hostname()}/${process.pid}` })
      .withCommand([...command(port)])
      .withWaitStrategy(Wait.forLogMessage(readyLine))
      .withStartupTimeout(CONTAINER_START_TIMEOUT_MS)
    await startWithLog(container)
    return { host, port, server: toServer(docker, container) }
  })
}

class LocalContainer extends GenericContainer {
  id = ''
  remove = async (): Promise<void> => undefined

  /** Like `withExposedPorts`, which would also publish the port to the local network. */
  withPort(host: string, port: number, innerPort: number): this {
    const HostIp = host === 'localhost' ? '127.0.0.1' : isIP(host) ? host : ''
    this.createOpts.ExposedPorts = { [`${innerPort}/tcp`]: {} }
    this.hostConfig.PortBindings = { [`${innerPort}/tcp`]: [{ HostIp, HostPort: `${port}` }] }
    return this
  }

  protected override async containerCreated(id: string): Promise<void> {
    this.id = id
    this.remove = cleanUpAtEnd(async () => removeContainer(await findDocker(), id))
  }
}

/** If the container exits or does not become ready in time, throws an error that contains the end of its log. */
async function startWithLog(container: GenericContainer): Promise<StartedTestContainer> {
  let log: Readable | undefined
  let output = ''
  container.withLogConsumer((stream) => {
    log = stream.on('data', (chunk) => (output += chunk))
  })
  try {
    return await container.start()
  } catch (error) {
    // The container has exited by now, so its log ends.
    if (log) await within(LOG_END_TIMEOUT_MS, 'the end of the log', finished(log)).catch(() => undefined)
    const end = output.trimEnd().split('\n').slice(-LOG_LINES).join('\n')
    throw new Error(`${String(error)}; the end of its log:\n${end || '(empty)'}`, { cause: error })
  }
}

function toServer(docker: ContainerRuntimeClient, { id, remove }: LocalContainer): EngineServer {
  const container = docker.container.dockerode.getContainer(id)
  return {
    async freeze() {
      // On a busy machine, Docker sometimes fails with "unable to freeze".
      for (let attemptsLeft = 4; ; attemptsLeft--) {
        try {
          return void (await container.pause())
        } catch (error) {
          if (attemptsLeft === 0 || !String(error).includes('unable to freeze')) throw error
        }
      }
    },
    unfreeze: async () => void (await container.unpause()),
    async kill() {
      await container.kill()
      await container.wait()
    },
    start: async () => void (await container.start()),
    stop: remove,
  }
}

let docker: Promise<ContainerRuntimeClient> | undefined

async function findDocker(): Promise<ContainerRuntimeClient> {
  return (docker ??= connectToDocker())
}

async function connectToDocker(): Promise<ContainerRuntimeClient> {
  const client = await within(DOCKER_TIMEOUT_MS, 'Docker responds', getContainerRuntimeClient()).catch((cause: unknown) => {
    throw new NoEngine('Docker does not respond', { cause })
  })
  const { DOCKER_HOST } = process.env
  const { socketPath, host } = client.container.dockerode.modem as { socketPath?: string; host?: string }
  // If DOCKER_HOST does not respond, testcontainers uses another Docker.
  const isConfiguredOne = !DOCKER_HOST || DOCKER_HOST === `unix://${socketPath}` || new URL(DOCKER_HOST).hostname === host
  if (!isConfiguredOne) throw new NoEngine(`Docker does not respond at DOCKER_HOST, which is ${DOCKER_HOST}`)
  await removeContainersOfKilledRuns(client)
  return client
}

async function removeContainersOfKilledRuns(client: ContainerRuntimeClient): Promise<void> {
  const labelled = await client.container.dockerode.listContainers({ all: true, filters: { label: [RUN_LABEL] } })
  const orphanedContainers = labelled.filter(({ Labels }) => {
    const [, host, pid] = /^(.*)\/(\d+)$/.exec(Labels[RUN_LABEL] ?? '') ?? []
    return host === hostname() && !isRunning(Number(pid))
  })
  await Promise.all(orphanedContainers.map(({ Id }) => removeContainer(client, Id)))
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** Another run may be removing the same container. */
async function removeContainer(client: ContainerRuntimeClient, id: string): Promise<void> {
  await unlessMissing(client.container.dockerode.getContainer(id).remove({ force: true, v: true }))
}

/** Returns whether the container or image still exists. */
async function unlessMissing(request: Promise<unknown>): Promise<boolean> {
  try {
    await request
    return true
  } catch (error) {
    if ([404, 409].includes((error as { statusCode?: number }).statusCode ?? 0)) return false
    throw error
  }
}

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cleanUpAtEnd } from './engines/cleanup.js'
import type { ImageChoice } from './engines/docker.js'
import { findImage, RUN_LABEL } from './engines/docker.js'
import { NoEngine, withEngine } from './engines/no-engine.js'

const run = promisify(execFile)

const RECIPES: readonly Pick<ImageChoice, 'variable' | 'recipe'>[] = [
  { variable: 'NGINX_IMAGE', recipe: 'nginx' },
  { variable: 'MONGODB_IMAGE', recipe: 'mongodb-wire' },
  { variable: 'REDIS_IMAGE', recipe: 'redis' },
  { variable: 'NODE_IMAGE', recipe: 'node-build' },
  { variable: 'RUNTIME_IMAGE', recipe: 'node-runtime' },
]

export interface Container {
  readonly Name: string
  readonly Config: { readonly User: string; readonly Env: readonly string[]; readonly Labels: Readonly<Record<string, string>> }
  readonly HostConfig: {
    readonly CapDrop: readonly string[] | null
    readonly CapAdd: readonly string[] | null
    readonly Privileged: boolean
    readonly ReadonlyRootfs: boolean
    readonly SecurityOpt: readonly string[]
    readonly Memory: number
  }
  readonly NetworkSettings: { readonly Ports: Readonly<Record<string, readonly { HostIp: string; HostPort: string }[] | null>> }
  readonly State: { readonly ExitCode: number; readonly OOMKilled: boolean }
}

/** The services of docker-compose.yml under a project name of their own. */
export interface Stack {
  /** The folder that scripts/create-secrets.sh has filled. */
  readonly secrets: string
  /** Runs scripts/compose.sh, and returns its standard output. */
  compose(...args: string[]): Promise<string>
  inspect(): Promise<Container[]>
  /** Removes the containers, networks, volumes and secrets. */
  remove(): Promise<void>
}

const TO_RUN_IT = 'install Docker Compose 2.24 or later, and run scripts/set-up-engines.sh (as root on Debian, or with Docker)'

/** For a `before` hook. Skips the suite if Docker Compose or an image is missing. */
export async function findCompose(context: Mocha.Context): Promise<void> {
  await withEngine(
    context,
    async () => {
      await run('docker', ['compose', 'version']).catch((cause: unknown) => {
        throw new NoEngine('Docker Compose is not installed', { cause })
      })
    },
    TO_RUN_IT,
  )
}

/** For a `before` hook. Builds the image of the service and creates the secrets, but starts nothing. */
export async function prepareStack(context: Mocha.Context): Promise<Stack> {
  await findCompose(context)
  const images = await withEngine(
    context,
    () =>
      Promise.all(
        RECIPES.map(async ({ variable, recipe }) => [variable, await findImage({ variable, recipe, official: readDefault(variable) })]),
      ),
    TO_RUN_IT,
  )
  const folder = mkdtempSync(join(tmpdir(), 'petstore-compose-'))
  const project = `petstore-test-${process.pid}`
  const secrets = join(folder, 'secrets')
  const labels = writeLabels(join(folder, 'labels.json'))
  const settings = { SECRETS_FOLDER: secrets, HTTPS_LISTEN: '127.0.0.1:0', PETSTORE_IMAGE: `${project}:test` }
  const env: NodeJS.ProcessEnv = { ...process.env, ...Object.fromEntries(images), ...settings }

  const compose = async (...args: string[]) => {
    const { stdout } = await run('scripts/compose.sh', ['--file', labels, '--project-name', project, ...args], { env })
    return stdout.trim()
  }
  const remove = cleanUpAtEnd(async () => {
    await compose('down', '--volumes', '--timeout', '0')
    await run('docker', ['rmi', '--force', settings.PETSTORE_IMAGE])
    rmSync(folder, { recursive: true })
  })
  await run('scripts/create-secrets.sh', [], { env })
  await run('scripts/build-image.sh', ['--quiet', '--tag', settings.PETSTORE_IMAGE])
  return {
    secrets,
    compose,
    async inspect() {
      const ids = (await compose('ps', '--all', '--quiet')).split('\n')
      return JSON.parse((await run('docker', ['inspect', ...ids])).stdout) as Container[]
    },
    remove,
  }
}

function readDefault(variable: string): string {
  const files = readFileSync('Dockerfile', 'utf8') + readFileSync('docker-compose.yml', 'utf8')
  const [, image] = new RegExp(`^ARG ${variable}=(.+)$|\\$\\{${variable}:-([^}]+)\\}`, 'm').exec(files)?.filter(Boolean) ?? []
  if (image === undefined) throw new Error(`${variable} has no default`)
  return image
}

/** The next run of the tests removes containers that a killed run has left behind. */
function writeLabels(file: string): string {
  const labels = { [RUN_LABEL]: `${hostname()}/${process.pid}` }
  const services = Object.fromEntries(['nginx', 'petstore', 'mongodb', 'redis'].map((name) => [name, { labels }]))
  writeFileSync(file, JSON.stringify({ services }))
  return file
}

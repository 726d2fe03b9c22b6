import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CertificateAuthority } from './certificate-authority.js'
import { cleanUpAtEnd } from './engines/cleanup.js'
import { findProgram } from './engines/find-program.js'
import { freePort, onFreePort } from './engines/free-port.js'
import { killWithParent } from './engines/kill-with-parent.js'
import { NoEngine, withEngine } from './engines/no-engine.js'
import { until } from './until.js'

/** This file is not compiled: its path is relative to `dist`. */
const SHIPPED = fileURLToPath(new URL('../../../config/nginx.conf', import.meta.url))

/** nginx with `config/nginx.conf`, in front of replicas of this machine. */
export interface Nginx {
  /** The server without TLS, so that a load of many short connections does not measure TLS. */
  readonly url: string
  /** The server as it is shipped. Its certificate is from `authority` and for localhost. */
  readonly tlsUrl: string
  readonly authority: CertificateAuthority
  /** The lines of the access log so far. */
  readonly accessLog: readonly AccessLogLine[]
  /** The errors in the log so far. */
  readonly errors: readonly string[]
  /** Replaces the list of replicas. Resolves when only workers with the new list accept connections. */
  reload(replicaUrls: readonly string[]): Promise<void>
  stop(): Promise<void>
}

export interface AccessLogLine {
  readonly requestId: string
  readonly client: string
  readonly method: string
  readonly status: number
  /** The IP addresses and ports of the replicas that nginx tried, in order. */
  readonly replicas: string
  readonly statuses: string
}

/** For a `before` hook. Skips the suite if nginx is not installed. */
export async function startNginx(context: Mocha.Context, replicaUrls: readonly string[]): Promise<Nginx> {
  return withEngine(context, () => startNginxProcess(replicaUrls))
}

/** Throws `NoEngine` if nginx is not installed. */
export async function startNginxProcess(replicaUrls: readonly string[]): Promise<Nginx> {
  return onFreePort((port) => startOnPort(port, replicaUrls))
}

async function startOnPort(port: number, replicaUrls: readonly string[]): Promise<Nginx> {
  const program = findProgram('nginx')
  if (program === undefined) throw new NoEngine('nginx is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'petstore-nginx-'))
  const authority = await CertificateAuthority.create('Authority of nginx')
  const files = await authority.issue({ names: ['localhost'] })
  const tlsPort = await freePort()

  const configFile = join(folder, 'nginx.conf')
  const configure = (urls: readonly string[]) => {
    let config = readFileSync(SHIPPED, 'utf8')
    const [serverLine = 'server petstore:8080', parameters = ''] = /server petstore:8080([^;]*;)/.exec(config) ?? []
    const substitutions: Readonly<Record<string, string>> = {
      [serverLine]: urls.map((url) => `server ${new URL(url).host}${parameters}`).join('\n'),
      'listen 443 ssl;': `listen 127.0.0.1:${tlsPort} ssl;\nlisten 127.0.0.1:${port};`,
      '/etc/nginx/tls/certificate.pem': files.certificateFile,
      '/etc/nginx/tls/key.pem': files.keyFile,
      '/var/log/nginx': folder,
    }
    for (const [text, replacement] of Object.entries(substitutions)) {
      if (!config.includes(text)) throw new Error(`config/nginx.conf does not contain: ${text}`)
      config = config.replaceAll(text, replacement)
    }
    writeFileSync(configFile, config)
  }
  configure(replicaUrls)

  const args = ['-p', folder, '-e', join(folder, 'error.log'), '-c', configFile, '-g', `daemon off; pid ${join(folder, 'pid')};`]
  const child = spawn(...killWithParent(program, args), { stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exit = once(child, 'exit')
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const stop = cleanUpAtEnd(async () => {
    child.kill('SIGTERM')
    await exit
    authority.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  const readLog = (name: string) => readFileSync(join(folder, name), { encoding: 'utf8', flag: 'a+' })
  const count = (event: RegExp) => (readLog('error.log').match(event) ?? []).length
  const countStarted = () => count(/start worker process \d/g)
  await until('nginx has started', () => hasEnded() || countStarted() > 0)
  if (hasEnded()) {
    await stop()
    throw new Error(`nginx exited:\n${stderr}`)
  }

  return {
    url: `http://127.0.0.1:${port}`,
    tlsUrl: `https://localhost:${tlsPort}`,
    authority,
    get accessLog() {
      const lines = readLog('access.log').split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as AccessLogLine)
    },
    get errors() {
      return readLog('error.log')
        .split('\n')
        .filter((line) => line.includes(' [error] '))
    },
    async reload(urls) {
      configure(urls)
      const workers = countStarted()
      child.kill('SIGHUP')
      await until('the old workers no longer accept connections', () => count(/gracefully shutting down/g) === workers)
    },
    stop,
  }
}

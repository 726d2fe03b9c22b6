// Starts a Prometheus with the configuration in config/prometheus/, and queries it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { cleanUpAtEnd } from '../dist/test/support/engines/cleanup.js'
import { findProgram } from '../dist/test/support/engines/find-program.js'
import { freePort } from '../dist/test/support/engines/free-port.js'
import { killWithParent } from '../dist/test/support/engines/kill-with-parent.js'
import { until } from '../dist/test/support/until.js'

const readConfig = (name) => parse(readFileSync(new URL(`../config/prometheus/${name}`, import.meta.url), 'utf8'))

/** Scrapes the admin ports every second. Alerts wait for `alertDelayDivisor` times less than config/prometheus/alerts.yml says. */
export async function startPrometheus(adminUrls, { alertDelayDivisor }) {
  const program = findProgram('prometheus')
  if (program === undefined)
    throw new Error('Prometheus is not installed: on Debian, run apt-get install --no-install-recommends prometheus')
  const folder = mkdtempSync(join(tmpdir(), 'petstore-prometheus-'))
  const config = readConfig('prometheus.yml')
  config.global = { scrape_interval: '1s', evaluation_interval: '1s' }
  const [job] = config.scrape_configs
  delete job.dns_sd_configs
  job.static_configs = [{ targets: adminUrls.map((url) => new URL(url).host) }]
  writeFileSync(join(folder, 'prometheus.yml'), stringify(config))
  const alerts = readConfig('alerts.yml')
  for (const rule of alerts.groups.flatMap(({ rules }) => rules)) {
    if (rule.for !== undefined) rule.for = `${(Number.parseInt(rule.for) * 60) / alertDelayDivisor}s`
  }
  writeFileSync(join(folder, 'alerts.yml'), stringify(alerts))

  const port = await freePort()
  const args = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`]
  const child = spawn(...killWithParent(program, [...args, '--log.level=warn']), { stdio: ['ignore', 'ignore', 'inherit'] })
  const exit = once(child, 'exit')
  const stop = cleanUpAtEnd(async () => {
    child.kill('SIGTERM')
    await exit
    rmSync(folder, { recursive: true, force: true })
  })

  const fetchApi = async (path) => fetch(`http://127.0.0.1:${port}${path}`)
  const isReady = async () => (await fetchApi('/-/ready').catch(() => undefined))?.status === 200
  await until('Prometheus is ready', async () => child.exitCode !== null || (await isReady()), 20_000)
  if (child.exitCode !== null) throw new Error(`Prometheus exited with ${child.exitCode}`)
  return {
    stop,
    /** Returns the series: each with `metric` (its labels) and `values` (pairs of a Unix time and a value as text). */
    async queryRange(query, { startSeconds, endSeconds, stepSeconds }) {
      const parameters = new URLSearchParams({ query, start: startSeconds, end: endSeconds, step: stepSeconds })
      const { status, error, data } = await (await fetchApi(`/api/v1/query_range?${parameters}`)).json()
      if (status !== 'success') throw new Error(`${query}: ${error}`)
      return data.result
    },
  }
}

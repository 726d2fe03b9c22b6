import { expect } from 'chai'
import { useDatabases } from '../support/engines/use-databases.js'
import type { DocumentedMetric, Metric } from '../support/metrics.js'
import { parseMetrics, readDocumentedMetrics } from '../support/metrics.js'
import type { ServiceProcess } from '../support/process.js'
import { exchangeOnce } from '../support/raw-socket.js'
import { endProcesses, issueKey, startService } from '../support/process.js'
import { sharedSettings } from '../support/replicas.js'

const DOCUMENTED = readDocumentedMetrics()

describe('docs/operations/metrics.md', function () {
  this.timeout(30_000)
  after(endProcesses)

  it('lists every metric only once', () => {
    expect(new Set(DOCUMENTED.map(({ name }) => name))).to.have.property('size', DOCUMENTED.length)
  })

  it('lists the metrics that a service in embedded mode exposes, with their types and labels', async () => {
    const service = await startService()
    await cause200And401(service, service.keys.free)
    expect(await exchangeOnce(service.url, 'garbage\r\n\r\n')).to.include({ status: 400 })
    const text = await scrape(service)
    expectSame(
      text,
      DOCUMENTED.filter(({ isOnlyDistributed }) => !isOnlyDistributed),
    )
    expect(text).to.include('petstore_unreadable_requests_total{code="bad_request"} 1\n')
    expect(text).to.match(/^petstore_build_info\{version="\d+\.\d+\.\d+",node_version="v\d+\.\d+\.\d+"\} 1$/m)
  })

  describe('with MongoDB and Redis', () => {
    after(endProcesses)
    const databases = useDatabases()

    it('lists the metrics that a service in distributed mode exposes, with their types and labels', async () => {
      const settings = sharedSettings(databases.mongo, databases.redis.url)
      const service = await startService(settings)
      await cause200And401(service, (await issueKey(settings)).key)
      const text = await scrape(service)
      expectSame(text, DOCUMENTED)
      for (const sample of [
        'petstore_mongodb_up 1',
        'petstore_redis_breaker_open 0',
        'petstore_replicas 1',
        'petstore_ready 1',
        'petstore_mongodb_pool_failures_total{reason="timeout"} 0',
        'petstore_mongodb_call_duration_seconds_count{call="pets.find",result="ok"} 1',
        'petstore_mongodb_call_duration_seconds_count{call="apiKeys.find",result="ok"} 1',
        'petstore_redis_call_duration_seconds_count{result="ok"} 1',
      ]) {
        expect(text.split('\n')).to.include(sample)
      }
      expect(Number(/^petstore_mongodb_pool_wait_seconds_count (\d+)$/m.exec(text)?.[1])).to.be.at.least(2)
    })
  })
})

async function cause200And401(service: ServiceProcess, key: string): Promise<void> {
  expect((await service.send('/v1/pets', { key })).status).to.equal(200)
  expect((await service.send('/v1/pets')).status).to.equal(401)
}

async function scrape({ adminUrl }: ServiceProcess): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`)).text()
}

function expectSame(text: string, documented: readonly DocumentedMetric[]): void {
  const exposed = parseMetrics(text)
  const describe = ({ name, type }: Metric) => `${name}, ${type}`
  expect(exposed.map(describe)).to.have.members(documented.map(describe))
  for (const { name, labels } of exposed) {
    expect([...(documented.find((metric) => metric.name === name)?.labels ?? [])], name).to.include.members([...labels])
  }
}

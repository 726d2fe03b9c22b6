import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../support/engines/free-port.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { FaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { LIST_MODULES_ON_SIGUSR2, stopAndListLoadedPackages } from '../support/loaded-packages.js'
import type { ExportedSpan, OtlpCollector } from '../support/otlp-collector.js'
import { getAttributes, startOtlpCollector } from '../support/otlp-collector.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey, startService } from '../support/process.js'
import { sharedSettings } from '../support/replicas.js'
import type { StoredKey } from '../support/stored-key.js'
import { until } from '../support/until.js'

const PRELOAD_TRACING = `--import=${fileURLToPath(new URL('../../src/tracing.js', import.meta.url))}`
const REMOTE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const TRACEPARENT = `00-${REMOTE.traceId}-${REMOTE.spanId}-01`
const SERVER = 2
const CLIENT = 3
const ERROR = 2

/** Settings that trace to this endpoint and export spans soon. */
function traceTo(endpoint: string): Settings {
  return { NODE_OPTIONS: PRELOAD_TRACING, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '50' }
}

async function findServerSpan(collector: OtlpCollector, requestId: unknown): Promise<ExportedSpan> {
  const find = () => collector.spans.find((span) => getAttributes(span)['petstore.request_id'] === requestId)
  await until('the span of the request was exported', () => find() !== undefined)
  return find() as ExportedSpan
}

function readLog(service: ServiceProcess): Record<string, unknown>[] {
  return service.output.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]))
}

describe('traces of a service with MongoDB and Redis', () => {
  let collector: OtlpCollector
  let proxy: FaultInjectionProxy
  let service: ServiceProcess
  let owner: StoredKey

  after(async () => {
    await endProcesses()
    await proxy?.close()
    collector?.close()
  })
  const databases = useDatabases()
  before(async () => {
    collector = await startOtlpCollector()
    const direct = sharedSettings(databases.mongo, databases.redis.url)
    owner = await issueKey(direct)
    const url = new URL(databases.mongo.url)
    proxy = await startFaultInjectionProxy(databases.mongo.url)
    url.host = proxy.address
    service = await startService({ ...direct, MONGODB_URL: url.href, ...traceTo(collector.url) })
  })

  it('have a span of each request, below the span of the client, and spans of its MongoDB and Redis calls below that', async () => {
    const { headers, status } = await service.send('/v1/pets/4711', { key: owner.key, headers: { traceparent: TRACEPARENT } })
    expect(status).to.equal(404)
    const span = await findServerSpan(collector, headers['x-request-id'])
    expect(span).to.include({ ...REMOTE, spanId: span.spanId, parentSpanId: REMOTE.spanId, kind: SERVER, name: 'GET /v1/pets/{petId}' })
    expect(getAttributes(span)).to.deep.equal({
      'http.request.method': 'GET',
      'http.route': '/v1/pets/{petId}',
      'http.response.status_code': 404,
      'petstore.request_id': headers['x-request-id'],
    })

    const calls = collector.spans.filter(({ parentSpanId }) => parentSpanId === span.spanId)
    for (const call of calls) expect(call).to.include({ traceId: REMOTE.traceId, kind: CLIENT })
    const find = calls.find(({ name }) => name === 'find pets') ?? expect.fail()
    const mongoAttributes = { 'db.system.name': 'mongodb', 'db.collection.name': 'pets', 'db.operation.name': 'find' }
    expect(getAttributes(find)).to.deep.equal(mongoAttributes)
    const script = calls.find(({ name }) => /^EVAL(SHA)?$/.test(name)) ?? expect.fail()
    const { hostname, port } = new URL(databases.redis.url)
    const redisAttributes = { 'db.system.name': 'redis', 'server.address': hostname, 'server.port': Number(port) }
    expect(getAttributes(script)).to.deep.equal({ ...redisAttributes, 'db.operation.name': script.name })
  })

  it('have no key, hash of a key, key ID, path, query, body or header that a client sent', async () => {
    const hidden = 'hunter2'
    const wrong = { key: `${owner.key.slice(0, -1)}_` }
    await service.send('/v1/pets/918273645', {
      key: owner.key,
      headers: { 'user-agent': hidden, traceparent: TRACEPARENT, tracestate: `x=${hidden}` },
    })
    await service.send(`/v1/pets?name=${hidden}`, { key: owner.key, headers: { traceparent: hidden } })
    await service.send('/v1/pets', { key: owner.key, method: 'POST', body: { name: hidden, categoryId: 1 } })
    await service.send(`/v1/${hidden}`, wrong)
    const { headers } = await service.send('/v1/pets', { key: owner.key })
    await findServerSpan(collector, headers['x-request-id'])

    const exported = collector.bodies.join('\n')
    const hash = createHash('sha256').update(owner.key).digest()
    const secrets = [owner.key, owner.key.slice(9, 20), owner.keyId, hash.toString('hex'), hash.toString('base64').slice(0, 20)]
    for (const text of [...secrets, hidden, '918273645', 'pst_live_']) expect(exported).to.not.include(text)
  })

  it('exist only for API requests: none for health checks, heartbeats and what happens at start', async () => {
    for (const path of ['/livez', '/readyz', '/openapi.json']) expect((await service.send(path)).status).to.equal(200)
    expect((await fetch(`${service.adminUrl}/health`)).status).to.equal(200)
    const { headers } = await service.send('/v1/none')
    const last = await findServerSpan(collector, headers['x-request-id'])
    expect(last).to.include({ name: 'GET' })

    const others = new Set(readLog(service).flatMap(({ route, requestId }) => (/^\/(?!v1)/.test(String(route)) ? [requestId] : [])))
    expect(others.size).to.be.at.least(3)
    for (const span of collector.spans.filter(({ parentSpanId = REMOTE.spanId }) => parentSpanId === REMOTE.spanId)) {
      expect(span).to.include({ kind: SERVER })
      expect(others).to.not.include(getAttributes(span)['petstore.request_id'])
    }
  })

  it('show which call has failed, without its message', async () => {
    proxy.stopForwarding()
    const { headers, status } = await service.send('/v1/pets/1', { key: owner.key })
    proxy.resume()
    proxy.closeConnections()
    expect(status).to.equal(503)
    const span = await findServerSpan(collector, headers['x-request-id'])
    expect(span.status).to.deep.equal({ code: ERROR })
    expect(getAttributes(span)).to.include({ 'error.type': 'service_unavailable' })
    const call = collector.spans.find(({ parentSpanId, name }) => parentSpanId === span.spanId && name === 'find pets') ?? expect.fail()
    expect(call.status).to.deep.equal({ code: ERROR })
    expect(getAttributes(call)).to.include({ 'error.type': 'StoreUnavailable' })
  })
})

describe('tracing', () => {
  const collectors: OtlpCollector[] = []
  const aCollector = async (options?: { isSilent: boolean }) => {
    const collector = await startOtlpCollector(options)
    collectors.push(collector)
    return collector
  }
  afterEach(async () => {
    await endProcesses()
    for (const collector of collectors.splice(0)) collector.close()
  })

  it('adds the trace ID to the log line of a request that has none, and exports the last spans when the service stops', async () => {
    const collector = await aCollector()
    const service = await startService({ ...traceTo(collector.url), OTEL_BSP_SCHEDULE_DELAY: '3600000', OTEL_SERVICE_NAME: 'pets-eu' })
    await service.send('/v1/pets', { key: service.keys.free })
    expect(await service.stop()).to.equal(0)
    const line = readLog(service).find(({ msg }) => msg === 'request')
    expect(collector.spans.map(({ traceId }) => traceId)).to.deep.equal([line?.['traceId']])
    expect(collector.bodies[0]).to.include('pets-eu')
  })

  it('follows OTEL_TRACES_SAMPLER', async () => {
    const collector = await aCollector()
    const service = await startService({ ...traceTo(collector.url), OTEL_TRACES_SAMPLER: 'always_off' })
    await service.send('/v1/pets', { key: service.keys.free })
    await service.stop()
    expect(readLog(service).find(({ msg }) => msg === 'request')).to.have.property('traceId')
    expect(collector.bodies).to.deep.equal([])
  })

  it('affects no request if the collector is unreachable: the log has one warning and only JSON', async () => {
    const service = await startService({
      ...traceTo(`http://127.0.0.1:${await freePort()}`),
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
      // The SDK reports each of these.
      OTEL_TRACES_SAMPLER: 'unknown',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
    })
    for (let request = 0; request < 5; request++) {
      expect((await service.send('/v1/pets', { key: service.keys.free })).status).to.equal(200)
    }
    const startedMs = performance.now()
    expect(await service.stop()).to.equal(0)
    expect(performance.now() - startedMs).to.be.lessThan(2_000)
    const warnings = readLog(service).filter(({ level }) => Number(level) > 30)
    expect(warnings).to.have.lengthOf(1)
    expect(warnings[0]).to.include({ level: 40, msg: 'OpenTelemetry reports a problem: traces may be incomplete' })
    expect((await service.ended).stderr).to.equal(service.notice)
  })

  it('logs why spans cannot be exported', async () => {
    const port = await freePort()
    const service = await startService({ ...traceTo(`http://127.0.0.1:${port}`), OTEL_EXPORTER_OTLP_TIMEOUT: '100' })
    await service.send('/v1/pets', { key: service.keys.free })
    await until('a warning is logged', () => readLog(service).some(({ level }) => level === 40))
    expect(readLog(service).find(({ level }) => level === 40)).to.include({ reason: `connect ECONNREFUSED 127.0.0.1:${port}` })
  })

  it('delays the shutdown by at most one second if the collector does not respond', async () => {
    const collector = await aCollector({ isSilent: true })
    const service = await startService(traceTo(collector.url))
    await service.send('/v1/pets', { key: service.keys.free })
    await until('the collector has received the spans', () => collector.spans.length > 0)
    const startedMs = performance.now()
    expect(await service.stop()).to.equal(0)
    expect(performance.now() - startedMs).to.be.within(900, 2_000)
  })

  it('loads the SDK of OpenTelemetry only with an endpoint and the preloaded module', async () => {
    const collector = await aCollector()
    const endpoint = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` }
    const loads = async (settings: Settings, ...preloaded: string[]) => {
      const service = await startService({ ...settings, NODE_OPTIONS: [LIST_MODULES_ON_SIGUSR2, ...preloaded].join(' ') })
      await service.send('/v1/pets', { key: service.keys.free })
      const packages = await stopAndListLoadedPackages(service)
      expect(packages).to.include('koa')
      // prom-client always loads the API package.
      return [...packages].some((name) => name?.startsWith('@opentelemetry/') && name !== '@opentelemetry/api')
    }
    expect(await loads(endpoint, PRELOAD_TRACING)).to.equal(true)
    expect(collector.spans).to.have.lengthOf(1)
    expect(await loads({}, PRELOAD_TRACING)).to.equal(false)
    expect(await loads({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, PRELOAD_TRACING)).to.equal(false)
    expect(await loads({ ...endpoint, OTEL_SDK_DISABLED: 'true' }, PRELOAD_TRACING)).to.equal(false)
    expect(await loads({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, PRELOAD_TRACING)).to.equal(false)
    expect(await loads(endpoint)).to.equal(false)
  })
})

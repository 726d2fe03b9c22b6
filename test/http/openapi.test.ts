import type { RequestListener } from 'node:http'
import { expect } from 'chai'
import type { Logger } from 'pino'
import { parse } from 'yaml'
import { ERROR_CATALOGUE } from '../../src/adapters/http/error-catalogue.js'
import { listen, makeServer } from '../../src/adapters/http/server.js'
import { TOKENS } from '../../src/container.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import { expectError } from '../support/answers.js'
import type { TestApi } from '../support/api.js'
import { send, startApi } from '../support/api.js'
import type { Swept } from '../support/sweep.js'
import { patientPlans, sweep, sweepFailures, sweepRemoved } from '../support/sweep.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { withApi } from '../support/with-api.js'

interface Response {
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>
  readonly content: Readonly<Record<string, { readonly examples?: Readonly<Record<string, { readonly value: unknown }>> }>>
}

interface OperationObject {
  readonly operationId: string
  readonly deprecated?: boolean
  readonly responses: Readonly<Record<string, Response>>
  readonly 'x-stability'?: string
}

interface Document {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly required?: boolean }>>
    readonly schemas: { readonly Error: { readonly properties: { readonly code: { readonly enum: readonly string[] } } } }
  }
}

/** What any HTTP answer may carry, and what hardening adds: not part of the contract. */
const NOT_DECLARED =
  /^(date|connection|keep-alive|content-.*|transfer-encoding|cache-control|referrer-policy|cross-origin-.*|strict-transport-.*|x-content-type-.*)$/

async function serverUrls(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const { servers } = (await send(url, '/openapi.json', { headers })).json as Document
  return servers.map((server) => server.url)
}

describe('the OpenAPI document', () => {
  let api: TestApi
  let document: Document
  let swept: readonly Swept[]

  before(async () => {
    const pets = new UnreliablePetStore()
    api = await startApi({
      config: { plans: patientPlans() },
      rebind: (container) => void container.rebind<PetStore>(TOKENS.pets).toConstantValue(pets),
    })
    document = (await api.send('/openapi.json')).json as Document
    swept = [...(await sweep(api)), ...(await sweepFailures(api, pets)), ...(await sweepRemoved(api))]
  })
  after(() => api.stop())

  /** The operation that a request of the sweep was for; undefined where the document knows none. */
  const operationOf = ({ path, method }: Swept): OperationObject | undefined => {
    const [bare = ''] = path.replace(/^\/v1/, '').split('?')
    const template = /^\/pets\/[^/]+$/.test(bare) ? '/pets/{petId}' : bare
    return document.paths[template]?.[method.toLowerCase()]
  }

  const sweptOperations = (): [Swept, OperationObject][] =>
    swept.flatMap((one) => {
      const operation = operationOf(one)
      return operation ? [[one, operation] as [Swept, OperationObject]] : []
    })

  it('is OpenAPI 3.1 of this version, with the four operations', () => {
    expect(document).to.include({ openapi: '3.1.0' })
    expect(document.info.version).to.equal('1.0.0')
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    )
    expect(operations).to.have.members([
      'get /pets listPets',
      'post /pets createPet',
      'get /pets/{petId} getPet',
      'get /store/orders listOrders',
    ])
  })

  it('is the same as JSON and as YAML, each with its type, without a key', async () => {
    const [json, yaml] = [await api.send('/openapi.json'), await api.send('/openapi.yaml')]
    expect(json.headers['content-type']).to.equal('application/json')
    expect(yaml.headers['content-type']).to.equal('application/yaml')
    expect(parse(yaml.text)).to.deep.equal(json.json)
    expect(yaml.text).to.not.match(/: [&*]\w+\d*$/m)
  })

  it('names PUBLIC_URL as its only server where it is set', () =>
    withApi({ config: { publicUrl: 'https://pets.example/shop' } }, async (own) => {
      expect(await serverUrls(own.url)).to.deep.equal(['https://pets.example/shop/v1'])
    }))

  it('names the URL that the process listens on where PUBLIC_URL is not set', async () => {
    expect(await serverUrls(api.url)).to.deep.equal([`${api.url}/v1`])
    expect((parse((await api.send('/openapi.yaml')).text) as Document).servers[0]?.url).to.equal(`${api.url}/v1`)
  })

  it('names the IP address that the client connected to where the process listens on all of them', async () => {
    const everywhere = makeServer(api.container.get<RequestListener>(TOKENS.api), api.container.get<Logger>(TOKENS.log))
    try {
      const { port } = new URL(await listen(everywhere, '0.0.0.0', 0))
      for (const host of ['127.0.0.1', '127.0.0.2', '127.0.0.1']) {
        expect(await serverUrls(`http://${host}:${port}`)).to.deep.equal([`http://${host}:${port}/v1`])
      }
    } finally {
      everywhere.close()
    }
  })

  it('never names what the client sends as Host', async () => {
    expect(await serverUrls(api.url, { host: 'evil.example', 'x-forwarded-host': 'evil.example' })).to.deep.equal([`${api.url}/v1`])
  })

  it('declares every status and code that the sweep met', () => {
    const met = sweptOperations()
    expect(met).to.have.length.above(100)
    for (const [{ path, method, answer }, { operationId, responses }] of met) {
      const response = responses[answer.status]
      expect(response, `${operationId} answers ${answer.status}`).to.be.an('object')
      const { code } = answer.status >= 400 ? (answer.json as { code: string }) : { code: undefined }
      if (code !== undefined)
        expect(response?.content['application/json']?.examples, `${method} ${path}: ${answer.status}`).to.have.property(code)
    }
  })

  it('declares every header that the sweep met, and every answer carries those that are declared as required', () => {
    const operations = sweptOperations()
    for (const [{ path, method, answer }, { responses }] of operations) {
      const declared = Object.keys(responses[answer.status]?.headers ?? {})
      const required = declared.filter((name) => document.components.headers[name]?.required)
      const sent = Object.keys(answer.headers).filter((name) => !NOT_DECLARED.test(name))
      const what = `${method} ${path}: ${answer.status}`
      expect(sent, what).to.include.members(required.map((name) => name.toLowerCase()))
      expect(
        declared.map((name) => name.toLowerCase()),
        what,
      ).to.include.members(sent)
    }
  })

  it('promises the quota triple and the request id on every answer that a route gives', () => {
    const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-Request-Id']
    for (const { responses } of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
      for (const [status, { headers }] of Object.entries(responses)) {
        if (status !== '408' && status !== '431') expect(headers, status).to.include.keys(names)
      }
    }
    for (const name of names) expect(document.components.headers[name]).to.include({ required: true })
  })

  it('shows for every code an example that is the very body', () => {
    for (const { responses } of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
      for (const [status, { content }] of Object.entries(responses)) {
        for (const [code, { value }] of Object.entries(content['application/json']?.examples ?? {})) {
          if (Number(status) >= 400)
            expect(value)
              .to.include({ code, status: Number(status) })
              .and.to.have.all.keys('code', 'message', 'status')
        }
      }
    }
  })

  it('lists every error code of the catalogue', () => {
    expect(document.components.schemas.Error.properties.code.enum).to.have.members(Object.keys(ERROR_CATALOGUE))
  })

  it('marks what is experimental and what is deprecated, as the answers do', () => {
    for (const [{ answer }, operation] of sweptOperations()) {
      expect(answer.headers['x-stability']).to.equal(operation['x-stability'])
      expect('deprecation' in answer.headers).to.equal(operation.deprecated === true)
    }
    expect(document.paths['/store/orders']?.['get']).to.include({ 'x-stability': 'experimental' })
    expect(document.paths['/pets/{petId}']?.['get']).to.include({ deprecated: true, 'x-sunset': '2030-12-05' })
  })

  it('writes no bounds for int64 that JSON would round', async () => {
    expect((await api.send('/openapi.json')).text).to.not.match(/922337203685477\d*/)
  })

  it('is not served, nor its page, when DOCS is off', () =>
    withApi({ config: { docs: false } }, async (own, key) => {
      for (const path of ['/openapi.json', '/openapi.yaml', '/docs', '/docs/scalar.js', '/docs/start.js']) {
        expectError(await own.send(path), 404, 'not_found')
      }
      expect(await own.send('/v1/pets', { key })).to.include({ status: 200 })
    }))
})

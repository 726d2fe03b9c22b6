import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { parse } from 'yaml'
import { ERROR_CATALOGUE } from '../../src/adapters/http/errors/error-catalogue.js'
import { ERROR_RESPONSES } from '../../src/adapters/http/openapi/error-responses.js'
import { buildOpenApiDocument } from '../../src/adapters/http/openapi/openapi.js'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { readVersion } from '../../src/version.js'
import { readConfig } from '../../src/config.js'
import { expectError } from '../support/responses.js'
import { send, useApi, withApi } from '../support/api.js'
import type { SweepResult } from '../support/sweep.js'
import { plansWithHighFailureLimit, sweep, sweepFailures, sweepRemoved } from '../support/sweep.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'

interface Reference {
  readonly $ref: string
}

interface Response {
  readonly headers: Readonly<Record<string, Reference>>
  readonly content: Readonly<Record<string, { readonly examples?: Readonly<Record<string, { readonly value: unknown }>> }>>
}

interface Parameter {
  readonly name: string
  readonly description?: string
  readonly example?: unknown
  readonly schema: Readonly<Record<string, unknown>>
}

interface OperationObject {
  readonly operationId: string
  readonly deprecated?: boolean
  readonly parameters?: readonly Parameter[]
  readonly responses: Readonly<Record<string, Response | Reference>>
  readonly 'x-stability'?: string
}

type Schema = Readonly<Record<string, unknown>>

interface Document {
  readonly openapi: string
  readonly info: { readonly version: string; readonly description: string; readonly contact: unknown }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly required?: boolean }>>
    readonly responses: Readonly<Record<string, Response>>
    readonly schemas: Readonly<Record<string, Schema & { readonly properties: Readonly<Record<string, Schema>> }>>
  }
}

/** General HTTP headers and security headers, which are not part of the contract. */
const NOT_DECLARED =
  /^(date|connection|keep-alive|content-.*|transfer-encoding|cache-control|referrer-policy|cross-origin-.*|strict-transport-.*|x-content-type-.*)$/

const readName = ({ $ref }: Reference) => $ref.slice($ref.lastIndexOf('/') + 1)

/** Every object in the document, with its JSON pointer. */
function listNodes(value: unknown, pointer = ''): [string, Readonly<Record<string, unknown>>][] {
  if (typeof value !== 'object' || value === null) return []
  const below = Object.entries(value).flatMap(([key, child]) =>
    listNodes(child, `${pointer}/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`),
  )
  return [[pointer, value as Readonly<Record<string, unknown>>], ...below]
}

const build = (serverUrl: string) =>
  buildOpenApiDocument({ serverUrl, plans: readConfig({}).plans, version: '0.0.0' }) as unknown as Document

async function getServerUrls(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const { servers } = (await send(url, '/openapi.json', { headers })).json as Document
  return servers.map((server) => server.url)
}

describe('the OpenAPI document', () => {
  const pets = new UnreliablePetStore()
  const api = useApi({ config: { plans: plansWithHighFailureLimit() }, doubles: { pets } })
  let document: Document
  let results: readonly SweepResult[]

  before(async () => {
    document = (await api.send('/openapi.json')).json as Document
    results = [...(await sweep(api)), ...(await sweepFailures(api, pets)), ...(await sweepRemoved(api))]
  })

  /** The operation that handled the request, undefined if the document has none. */
  const findOperation = ({ path, method }: SweepResult): OperationObject | undefined => {
    const [bare = ''] = path.replace(/^\/v1/, '').split('?')
    const template = /^\/pets\/[^/]+$/.test(bare) ? '/pets/{petId}' : bare
    return document.paths[template]?.[method.toLowerCase()]
  }

  /** The documented response for the status. */
  const findResponse = ({ responses }: OperationObject, status: number): Response | undefined => {
    const response = responses[status] ?? responses['default']
    return response && '$ref' in response ? document.components.responses[readName(response)] : response
  }

  const listOperations = () => Object.values(document.paths).flatMap((methods) => Object.values(methods))

  const listRequestedOperations = (): [SweepResult, OperationObject][] =>
    results.flatMap((request) => {
      const operation = findOperation(request)
      return operation ? [[request, operation] as [SweepResult, OperationObject]] : []
    })

  it('is an OpenAPI 3.1 document of this version, with the five operations', () => {
    expect(document).to.include({ openapi: '3.1.0' })
    expect(document.info.version).to.equal(readVersion())
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    )
    expect(listed).to.have.members([
      'get /pets listPets',
      'post /pets createPet',
      'get /pets/{petId} getPet',
      'get /store/orders listOrders',
      'get /usage getUsage',
    ])
  })

  it('is the same in JSON and YAML, each with its content type, without a key', async () => {
    const [json, yaml] = [await api.send('/openapi.json'), await api.send('/openapi.yaml')]
    expect(json.headers['content-type']).to.equal('application/json')
    expect(yaml.headers['content-type']).to.equal('application/yaml')
    expect(parse(yaml.text)).to.deep.equal(json.json)
    expect(yaml.text).to.not.match(/: [&*]\w+\d*$/m)
  })

  it('has PUBLIC_URL as its only server URL if it is set', () =>
    withApi({ config: { publicUrl: 'https://pets.example/shop' } }, async (own) => {
      expect(await getServerUrls(own.url)).to.deep.equal(['https://pets.example/shop/v1'])
    }))

  it('has an absolute server URL, and a contact URL below it', () => {
    const { servers, info } = build('https://pets.example/shop')
    expect(servers.map(({ url }) => url)).to.deep.equal(['https://pets.example/shop/v1'])
    expect(info.contact).to.deep.equal({ name: 'Pet Store maintainers', url: 'https://pets.example/shop/docs' })
  })

  it('has a description of at most five lines, because generators copy it into every file', () => {
    expect(document.info.description.split('\n')).to.have.length.within(1, 5)
  })

  it('has the URL that the process listens on as its server URL if PUBLIC_URL is not set', async () => {
    expect(await getServerUrls(api.url)).to.deep.equal([`${api.url}/v1`])
    expect((parse((await api.send('/openapi.yaml')).text) as Document).servers[0]?.url).to.equal(`${api.url}/v1`)
  })

  it('has the IP address that the client connected to in its server URL if the process listens on all addresses', async () => {
    const everywhere = makeServer(api.parts.api, { log: api.parts.log })
    try {
      const { port } = new URL(await listen(everywhere, '0.0.0.0', 0))
      for (const host of ['127.0.0.1', '127.0.0.2', '127.0.0.1']) {
        expect(await getServerUrls(`http://${host}:${port}`)).to.deep.equal([`http://${host}:${port}/v1`])
      }
    } finally {
      everywhere.close()
    }
  })

  it('never uses the Host header for the server URL', async () => {
    expect(await getServerUrls(api.url, { host: 'evil.example', 'x-forwarded-host': 'evil.example' })).to.deep.equal([`${api.url}/v1`])
  })

  it('has a response for every status that the service returns, with an example of the error code', () => {
    const requests = listRequestedOperations()
    expect(requests).to.have.length.above(100)
    for (const [{ path, method, response: actual }, operation] of requests) {
      const response = findResponse(operation, actual.status)
      expect(response, `${operation.operationId} returns ${actual.status}`).to.be.an('object')
      const { code } = actual.status >= 400 ? (actual.json as { code: string }) : { code: undefined }
      if (code !== undefined)
        expect(response?.content['application/json']?.examples, `${method} ${path}: ${actual.status}`).to.have.property(code)
    }
  })

  it('describes by status the errors that programs handle differently, and all others by default', () => {
    const described = Object.fromEntries(listOperations().map(({ operationId, responses }) => [operationId, Object.keys(responses)]))
    expect(described).to.deep.equal({
      listPets: ['200', '400', '401', '429', '503', 'default'],
      createPet: ['201', '400', '401', '415', '422', '429', '503', 'default'],
      getPet: ['200', '400', '401', '404', '410', '429', '503', 'default'],
      listOrders: ['200', '400', '401', '429', '503', 'default'],
      getUsage: ['200', '400', '401', '429', '503', 'default'],
    })
    for (const { responses } of listOperations()) {
      for (const [status, response] of Object.entries(responses)) {
        if (!status.startsWith('2')) expect(response, `${status} is shared by the operations`).to.have.all.keys('$ref')
      }
    }
  })

  it('declares every header that the service sends, and the service sends every header that is declared as required', () => {
    for (const [{ path, method, response: actual }, operation] of listRequestedOperations()) {
      const declared = Object.entries(findResponse(operation, actual.status)?.headers ?? {})
      const required = declared.filter(([, header]) => document.components.headers[readName(header)]?.required)
      const sent = Object.keys(actual.headers).filter((name) => !NOT_DECLARED.test(name))
      const label = `${method} ${path}: ${actual.status}`
      expect(sent, label).to.include.members(required.map(([name]) => name.toLowerCase()))
      expect(
        declared.map(([name]) => name.toLowerCase()),
        label,
      ).to.include.members(sent)
    }
  })

  it('requires the quota headers on responses of operations, except where the HTTP parser may respond', () => {
    const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Policy', 'RateLimit']
    const isRequired = (header?: Reference) => header && document.components.headers[readName(header)]?.required
    for (const operation of listOperations()) {
      for (const status of Object.keys(operation.responses)) {
        const { headers } = findResponse(operation, Number(status)) ?? expect.fail()
        const mayLackQuota = status === '400' || status === 'default'
        for (const name of names) expect(isRequired(headers[name]), `${name} on ${status}`).to.equal(!mayLackQuota)
        expect(isRequired(headers['X-Request-Id']), `X-Request-Id on ${status}`).to.equal(true)
      }
    }
  })

  it('has an example with the exact body for every error code in the catalog', () => {
    const shown = Object.values(document.components.responses).flatMap(({ content }) =>
      Object.entries(content['application/json']?.examples ?? {}).map(([code, { value }]) => [code, value] as const),
    )
    expect([...new Set(shown.map(([code]) => code))]).to.have.members(Object.keys(ERROR_CATALOGUE))
    for (const [code, value] of shown) {
      const { status, message } = ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE]
      expect(value).to.deep.equal({ code, message, status })
    }
  })

  it('describes by default only errors that no other response describes', () => {
    const { Error: other, ...described } = document.components.responses
    const listCodes = (response: Response | undefined) => Object.keys(response?.content['application/json']?.examples ?? {})
    const repeated = Object.values(described)
      .flatMap(listCodes)
      .filter((code) => listCodes(other).includes(code))
    expect(repeated).to.deep.equal([])
  })

  it('combines error codes in one response only if they have the same status', () => {
    for (const { codes } of Object.values(ERROR_RESPONSES)) {
      expect(new Set(codes.map((code) => ERROR_CATALOGUE[code].status)).size).to.equal(1)
    }
  })

  it('leaves responses open, so that new fields and error codes break no client', () => {
    for (const name of ['Pet', 'Order', 'Usage', 'WindowUsage', 'Ban', 'Error'])
      expect(document.components.schemas[name]).to.not.have.property('additionalProperties')
    const code = document.components.schemas['Error']?.properties['code']
    expect(code).to.not.have.property('enum')
    expect(code?.['x-extensible-enum']).to.have.members(Object.keys(ERROR_CATALOGUE))
    for (const each of Object.keys(ERROR_CATALOGUE)) expect(code?.['description']).to.include(`| \`${each}\` |`)
  })

  it('has only patterns that are anchored and valid in Unicode mode', () => {
    const patterns = listNodes(document).flatMap(([, { pattern }]) => (typeof pattern === 'string' ? [pattern] : []))
    expect(patterns).to.have.length.above(10)
    for (const pattern of patterns) {
      expect(pattern).to.match(/^\^.*\$$/)
      expect(() => new RegExp(pattern, 'u'), pattern).to.not.throw()
    }
  })

  it('has only examples that match their schemas', () => {
    const ajv = new Ajv2020({ strict: false, formats: { int32: true, int64: true } })
    addFormats.default(ajv, ['date-time'])
    ajv.addSchema(document, 'openapi')
    const examples = listNodes(document).flatMap(([pointer, node]) => {
      const schema = 'schema' in node ? `${pointer}/schema` : pointer
      const values = Object.values((node['examples'] ?? {}) as Record<string, { value: unknown }>).map(({ value }) => value)
      return [...('example' in node ? [node['example']] : []), ...values].map((value) => [schema, value] as const)
    })
    expect(examples).to.have.length.above(40)
    for (const [schema, value] of examples) {
      const validate = ajv.compile({ $ref: `openapi#${schema}` })
      expect(validate(value), `${schema}: ${JSON.stringify(value)} ${ajv.errorsText(validate.errors)}`).to.equal(true)
    }
  })

  it('has an example of every successful response', () => {
    for (const { operationId, responses } of listOperations()) {
      const [success] = Object.values(responses)
      expect((success as Response).content['application/json'], operationId).to.have.property('example')
    }
  })

  it('describes every parameter, and gives no optional one an example that an API client would send', () => {
    for (const { operationId, parameters = [] } of listOperations()) {
      for (const { name, description, example, schema } of parameters) {
        expect(description, `${operationId} ${name}`).to.be.a('string').and.match(/\S/)
        if (name !== 'petId') expect([example, schema['example']], `${operationId} ${name}`).to.deep.equal([undefined, undefined])
      }
    }
  })

  it('describes the default status in words, because the keyword default makes the field required in TypeScript', () => {
    const newPet = document.components.schemas['NewPet']
    expect(newPet?.properties['status']).to.not.have.property('default')
    expect(newPet?.properties['status']?.['description']).to.include('`available`')
    expect(newPet?.['required']).to.deep.equal(['name', 'categoryId'])
  })

  it('gives shipDate a format and no other constraints', () => {
    const { description, example, ...keywords } = document.components.schemas['Order']?.properties['shipDate'] ?? {}
    expect(keywords).to.deep.equal({ type: 'string', format: 'date-time' })
    expect([description, example]).to.not.include(undefined)
  })

  it('marks the same operations as beta, as experimental and as deprecated as the responses do', () => {
    for (const [{ response: actual }, operation] of listRequestedOperations()) {
      expect(actual.headers['x-stability']).to.equal(operation['x-stability'])
      expect('deprecation' in actual.headers).to.equal(operation.deprecated === true)
    }
    expect(document.paths['/store/orders']?.['get']).to.include({ 'x-stability': 'experimental' })
    expect(document.paths['/usage']?.['get']).to.include({ 'x-stability': 'beta' })
    expect(document.paths['/pets/{petId}']?.['get']).to.include({ deprecated: true, 'x-sunset': '2030-12-05' })
  })

  it('has no bounds of int64, which JSON parsers would round', async () => {
    expect((await api.send('/openapi.json')).text).to.not.match(/922337203685477\d*/)
  })

  it('is not served if DOCS is off, and neither is the docs page', () =>
    withApi({ config: { hasDocs: false } }, async (own, key) => {
      for (const path of ['/openapi.json', '/openapi.yaml', '/docs', '/docs/scalar.js', '/docs/start.js', '/docs/demo-key.json']) {
        expectError(await own.send(path), 404, 'not_found')
      }
      expect(await own.send('/v1/pets', { key })).to.include({ status: 200 })
    }))
})

import { expect } from 'chai'
import { buildPaths } from '../../src/adapters/http/openapi/openapi.js'
import type { Operation } from '../../src/adapters/http/operations/operation.js'
import { expectError, findLink } from '../support/responses.js'
import { withApi } from '../support/api.js'

const RESPONSES = { 204: { description: 'Done.' } }

function anOperation(overrides: Partial<Operation>): Operation {
  return {
    operationId: 'planted',
    method: 'get',
    path: '/toys/{toyId}',
    stability: 'stable',
    errors: [],
    document: { responses: RESPONSES },
    handle: async () => ({ status: 204 }),
    ...overrides,
  }
}

describe('the list of operations', () => {
  const old = anOperation({
    operationId: 'getToy',
    deprecation: { since: '2027-01-01', sunset: '2028-02-29', successor: '/games' },
    stability: 'beta',
  })
  const methods = ['put', 'patch', 'delete', 'post'] as const
  const others = methods.map((method) => anOperation({ operationId: `${method}Toy`, method }))
  const operations = [old, ...others]

  it('routes every HTTP method to the handler, with the path parameters and the ID of the key', () => {
    const calls: unknown[] = []
    const recording = operations.map((operation) => ({
      ...operation,
      handle: async (ctx, call) => {
        calls.push([operation.operationId, { params: call.params, keyId: call.keyId }])
        return operation.handle(ctx, call)
      },
    })) satisfies Operation[]
    return withApi({ doubles: { operations: recording } }, async (api) => {
      const { key, secret } = await api.issueKey()
      const call = { params: { toyId: 'a b' }, keyId: key.keyId }
      for (const method of ['GET', ...methods.map((each) => each.toUpperCase())]) {
        expect(await api.send('/v1/toys/a%20b', { method, key: secret }), method).to.include({ status: 204 })
      }
      expect(calls).to.deep.equal([
        ['getToy', call],
        ['putToy', call],
        ['patchToy', call],
        ['deleteToy', call],
        ['postToy', call],
      ])
    })
  })

  it('determines the Allow header of its paths and of OPTIONS *', () =>
    withApi({ doubles: { operations } }, async (api, key) => {
      const allow = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'
      expect((await api.send('/v1/toys/1', { method: 'TRACE', key })).headers).to.include({ allow })
      expect((await api.send('*', { method: 'OPTIONS' })).headers).to.include({ allow })
      expectError(await api.send('/v1/pets', { key }), 404, 'not_found')
    }))

  it('deprecates one operation of a path, and not the others', () =>
    withApi({ doubles: { operations } }, async (api, key) => {
      const { headers } = await api.send('/v1/toys/1', { method: 'HEAD', key })
      expect(headers).to.include({ deprecation: '@1798761600', sunset: 'Tue, 29 Feb 2028 00:00:00 GMT', 'x-stability': 'beta' })
      expect(findLink('successor-version', { headers })).to.equal('/v1/games')
      for (const method of ['PUT', 'PATCH', 'DELETE', 'POST']) {
        const other = await api.send('/v1/toys/1', { method, key })
        expect(other.headers, method).to.not.have.any.keys('deprecation', 'sunset', 'link', 'x-stability')
      }
      for (const method of ['OPTIONS', 'TRACE']) {
        expect((await api.send('/v1/toys/1', { method, key })).headers, method).to.include.keys(
          'deprecation',
          'sunset',
          'link',
          'x-stability',
        )
      }
    }))

  it('sends the headers of all operations of a path for a method that the path does not allow, in any order of the operations', () =>
    withApi({ doubles: { operations: [...others, old] } }, async (api, key) => {
      const { headers } = await api.send('/v1/toys/1', { method: 'TRACE', key })
      expect(headers).to.include.keys('deprecation', 'sunset', 'link', 'x-stability')
    }))

  it('removes an operation on its sunset date, and not the others of its path', () =>
    withApi({ doubles: { operations } }, async (api, key) => {
      api.clock.moveTo(Date.parse('2028-02-29T00:00:00Z') - 1)
      expect(await api.send('/v1/toys/1', { key })).to.include({ status: 204 })
      api.clock.advanceMs(1)
      expectError(await api.send('/v1/toys/1', { key }), 410, 'operation_removed')
      expect(await api.send('/v1/toys/1', { method: 'PUT', key })).to.include({ status: 204 })
    }))

  it('determines the paths of the OpenAPI document, with the sunset date and the 410 of deprecated operations', () => {
    const path = buildPaths(operations)['/toys/{toyId}']
    expect(path).to.have.all.keys('get', 'put', 'patch', 'delete', 'post')
    expect(path?.get).to.include({ operationId: 'getToy', deprecated: true, 'x-sunset': '2028-02-29', 'x-stability': 'beta' })
    expect(path?.get?.responses).to.include.keys('204', '410')
    expect(path?.put).to.not.have.any.keys('deprecated', 'x-sunset')
    expect(path?.put?.responses).to.not.have.property('410')
  })
})

import { expect } from 'chai'
import { withApi } from '../support/api.js'

const REQUESTS =
  'GET /v1/pets, GET /v1/nowhere, OPTIONS /v1/pets, DELETE /v1/pets, GET /nowhere, GET /livez, GET /docs, GET /docs/scalar.js, GET /openapi.json'

describe('Strict-Transport-Security', () => {
  for (const [publicUrl, expected] of [
    ['https://pets.example/shop', 'max-age=31536000'],
    ['http://pets.example', undefined],
    [undefined, undefined],
  ] as const) {
    it(`is ${expected ? 'on every response' : 'absent'} if PUBLIC_URL is ${publicUrl ?? 'not set'}`, () =>
      withApi({ config: publicUrl === undefined ? {} : { publicUrl } }, async (api, key) => {
        for (const request of REQUESTS.split(', ')) {
          const [method = '', path = ''] = request.split(' ')
          for (const credentials of [{}, { key }]) {
            const { headers } = await api.send(path, { method, ...credentials })
            expect(headers['strict-transport-security'], request).to.equal(expected)
          }
        }
      }))
  }
})

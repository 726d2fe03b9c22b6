import { expect } from 'chai'
import { withApi } from '../support/api.js'

/** Successes, errors before and after routing, and everything outside the API. */
const REQUESTS: readonly [path: string, method?: string][] = [
  ['/v1/pets'],
  ['/v1/nowhere'],
  ['/v1/pets', 'OPTIONS'],
  ['/v1/pets', 'DELETE'],
  ['/nowhere'],
  ['/livez'],
  ['/docs'],
  ['/docs/scalar.js'],
  ['/openapi.json'],
]

describe('Strict-Transport-Security', () => {
  const cases: [publicUrl: string | undefined, sent: string | undefined][] = [
    ['https://pets.example/shop', 'max-age=31536000'],
    ['http://pets.example', undefined],
    [undefined, undefined],
  ]
  for (const [publicUrl, sent] of cases) {
    it(`is ${sent ? 'sent with every response' : 'never sent'} where PUBLIC_URL is ${publicUrl ?? 'not set'}`, () =>
      withApi({ config: publicUrl === undefined ? {} : { publicUrl } }, async (api, key) => {
        for (const [path, method = 'GET'] of REQUESTS) {
          for (const credentials of [{}, { key }]) {
            const { headers } = await api.send(path, { method, ...credentials })
            expect(headers['strict-transport-security'], `${method} ${path}`).to.equal(sent)
          }
        }
      }))
  }
})

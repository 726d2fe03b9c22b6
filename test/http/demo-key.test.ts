import { expect } from 'chai'
import type { Config } from '../../src/config.js'
import type { TestApi } from '../support/api.js'
import { useApi, withApi } from '../support/api.js'

const PATH = '/docs/demo-key.json'

describe('the demo key of the docs page', () => {
  const api = useApi()
  let secret: string

  before(async () => {
    secret = await addDemoKey(api)
  })

  it('is the first demo key, for users of this machine, and is never cached', async () => {
    for (const host of ['127.0.0.1', 'localhost:8080', '[::1]:8080', '127.0.0.2:8080']) {
      const response = await api.send(PATH, { headers: { host } })
      expect(response, host).to.deep.include({ status: 200, json: { secret } })
      expect(response.headers).to.include({ 'cache-control': 'no-store' }).and.to.not.have.any.keys('etag', 'access-control-allow-origin')
    }
    expect((await api.send('/v1/pets', { key: secret })).status).to.equal(200)
  })

  it('is not sent to the page of an attacker that reaches the service with DNS rebinding', async () => {
    for (const host of ['attacker.example', '127.0.0.1.attacker.example:8080', 'localhost.attacker.example', '192.0.2.1']) {
      expect((await api.send(PATH, { headers: { host } })).json, host).to.deep.equal({})
    }
  })

  it('is not sent to pages of other origins', async () => {
    const { headers } = await api.send(PATH, { headers: { origin: 'http://127.0.0.1:3000' } })
    expect(headers).to.include({ 'cross-origin-resource-policy': 'same-origin' }).and.to.not.have.any.keys('access-control-allow-origin')
  })

  it('is not sent through a proxy or a tunnel', async () => {
    for (const headers of [{ 'x-forwarded-for': '192.0.2.1' }, { forwarded: 'for=192.0.2.1' }]) {
      expect((await api.send(PATH, { headers })).json).to.deep.equal({})
    }
  })

  it('is in no other file of the docs page, because those are cached', async () => {
    for (const path of ['/docs', '/docs/start.js', '/docs/scalar.js', '/openapi.json', '/openapi.yaml']) {
      expect((await api.send(path)).text, path).to.not.include(secret)
    }
  })

  it('is absent if there are no demo keys', async () => {
    await withApi({}, async (distributed) => {
      expect((await distributed.send(PATH)).json).to.deep.equal({})
    })
  })

  for (const [name, settings] of [
    ['HOST is every IP address', { host: '0.0.0.0' }],
    ['HOST is every IPv6 address', { host: '::' }],
    ['HOST is a public IP address', { host: '192.0.2.1' }],
    ['HOST is a public name', { host: 'pets.example' }],
    ['PUBLIC_URL is set', { publicUrl: 'https://pets.example' }],
    ['TRUSTED_PROXY_HOPS is not 0', { trustedProxyHops: 1 }],
  ] satisfies [string, Partial<Config>][]) {
    it(`is absent if ${name}`, async () => {
      await withApi({ config: settings }, async (open) => {
        await addDemoKey(open)
        expect(await open.send(PATH)).to.deep.include({ status: 200, json: {} })
      })
    })
  }

  for (const host of ['127.0.0.1', '::1', 'localhost', 'LOCALHOST']) {
    it(`is present if HOST is ${host}`, async () => {
      await withApi({ config: { host } }, async (local) => {
        const demoSecret = await addDemoKey(local)
        expect((await local.send(PATH)).json).to.deep.equal({ secret: demoSecret })
      })
    })
  }
})

async function addDemoKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('free')
  api.parts.demoSecrets.push(secret, (await api.issueKey('pro')).secret)
  return secret
}

import { expect } from 'chai'
import { toServerUrl } from '../../src/adapters/http/server-url.js'

describe('the URL of a server', () => {
  const cases: [host: string, url: string, what: string][] = [
    ['192.0.2.1', 'http://192.0.2.1:8080', 'has an IPv4 address as it is'],
    ['::1', 'http://[::1]:8080', 'has an IPv6 address in brackets'],
    ['::ffff:192.0.2.1', 'http://192.0.2.1:8080', 'has the IPv4 address of a client of a dual-stack socket'],
    ['0.0.0.0', 'http://localhost:8080', 'has localhost instead of all IPv4 addresses'],
    ['::', 'http://localhost:8080', 'has localhost instead of all IPv6 addresses'],
    ['pets.internal', 'http://pets.internal:8080', 'has a host name as it is'],
  ]
  for (const [host, url, what] of cases) {
    it(what, () => {
      expect(toServerUrl(host, 8080)).to.equal(url)
      expect(URL.canParse(url)).to.equal(true)
    })
  }
})

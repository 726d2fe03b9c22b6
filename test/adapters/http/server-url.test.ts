import { expect } from 'chai'
import { toServerUrl } from '../../../src/adapters/http/server/server-url.js'

describe('the URL of a server', () => {
  const cases: [host: string, url: string, what: string][] = [
    ['192.0.2.1', 'http://192.0.2.1:8080', 'contains an IPv4 address unchanged'],
    ['::1', 'http://[::1]:8080', 'contains an IPv6 address in brackets'],
    ['::ffff:192.0.2.1', 'http://192.0.2.1:8080', 'contains the IPv4 address that a dual-stack socket reports as IPv6'],
    ['0.0.0.0', 'http://localhost:8080', 'contains localhost for all IPv4 addresses'],
    ['::', 'http://localhost:8080', 'contains localhost for all IPv6 addresses'],
    ['pets.internal', 'http://pets.internal:8080', 'contains a host name unchanged'],
  ]
  for (const [host, url, what] of cases) {
    it(what, () => {
      expect(toServerUrl(host, 8080)).to.equal(url)
      expect(URL.canParse(url)).to.equal(true)
    })
  }
})

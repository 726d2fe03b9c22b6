import { expect } from 'chai'
import { resolveClientAddress } from '../../src/adapters/http/pipeline/client-address.js'

/** [socket address, X-Forwarded-For, trusted hops, who is charged] */
const CASES: Readonly<Record<string, readonly (readonly [string, string, number, string])[]>> = {
  'nobody is believed but the socket': [
    ['203.0.113.7', '', 0, '203.0.113.7'],
    ['203.0.113.7', '198.51.100.1', 0, '203.0.113.7'],
    ['203.0.113.7', '198.51.100.1, 198.51.100.2', 0, '203.0.113.7'],
  ],
  'one proxy is believed: what it wrote is the last entry': [
    ['10.0.0.1', '198.51.100.1', 1, '198.51.100.1'],
    ['10.0.0.1', '192.0.2.66, 198.51.100.1', 1, '198.51.100.1'],
    ['10.0.0.1', '192.0.2.66,192.0.2.67 ,\t198.51.100.1 ', 1, '198.51.100.1'],
  ],
  'two proxies are believed: the first of them wrote the last entry but one': [
    ['10.0.0.1', '198.51.100.1, 10.0.0.2', 2, '198.51.100.1'],
    ['10.0.0.1', '192.0.2.66, 198.51.100.1, 10.0.0.2', 2, '198.51.100.1'],
  ],
  'fewer entries than proxies: a request that did not pass all of them': [
    ['10.0.0.1', '', 1, '10.0.0.1'],
    ['10.0.0.1', '', 2, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1', 2, '198.51.100.1'],
    ['10.0.0.1', '198.51.100.1', 10, '198.51.100.1'],
  ],
  'a port beside the address is not part of it': [
    ['10.0.0.1', '198.51.100.1:4711', 1, '198.51.100.1'],
    ['10.0.0.1', '[2001:db8:1:2:3::4]:443', 1, '2001:db8:1:2::/64'],
    ['10.0.0.1', '[2001:db8:1:2:3::4]', 1, '2001:db8:1:2::/64'],
  ],
  'what is no address is charged to the proxy that wrote it': [
    ['10.0.0.1', 'unknown', 1, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, rubbish', 1, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, ', 1, '10.0.0.1'],
    ['10.0.0.1', 'rubbish, 10.0.0.2', 2, '10.0.0.2'],
    ['10.0.0.1', '300.1.1.1', 1, '10.0.0.1'],
  ],
  'IPv4 inside IPv6 is IPv4': [
    ['::ffff:203.0.113.7', '', 0, '203.0.113.7'],
    ['::ffff:cb00:7107', '', 0, '203.0.113.7'],
    ['::1', '::ffff:198.51.100.1', 1, '198.51.100.1'],
  ],
  'IPv6 addresses of one /64 are one client, however they are spelt': [
    ['2001:db8:1:2:3:4:5:6', '', 0, '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '', 0, '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff:ffff:ffff:ffff', '', 0, '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '', 0, '2001:db8:1:3::/64'],
    ['::1', '', 0, '::/64'],
    ['fe80::1%eth0', '', 0, 'fe80::/64'],
    ['10.0.0.1', '2001:db8:1:2::9', 1, '2001:db8:1:2::/64'],
  ],
}

describe('the address that a failed authentication is charged to', () => {
  for (const [guarantee, cases] of Object.entries(CASES)) {
    for (const [socket, forwardedFor, hops, charged] of cases) {
      it(`${guarantee}: ${socket} with "${forwardedFor}", ${hops} trusted: ${charged}`, () => {
        expect(resolveClientAddress(socket, forwardedFor, hops)).to.equal(charged)
      })
    }
  }
})

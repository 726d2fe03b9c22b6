import { expect } from 'chai'
import { resolveClientAddress } from '../../../src/adapters/http/pipeline/client-address.js'

/** [IP address of the connection, X-Forwarded-For, trusted proxies, expected] */
const CASES: Readonly<Record<string, readonly (readonly [string, string, number, string])[]>> = {
  'without trusted proxies is that of the connection': [
    ['203.0.113.7', '', 0, '203.0.113.7'],
    ['203.0.113.7', '198.51.100.1, 198.51.100.2', 0, '203.0.113.7'],
  ],
  'with one trusted proxy is the last entry of X-Forwarded-For': [
    ['10.0.0.1', '198.51.100.1', 1, '198.51.100.1'],
    ['10.0.0.1', '192.0.2.66, 198.51.100.1', 1, '198.51.100.1'],
    ['10.0.0.1', '192.0.2.66,192.0.2.67 ,\t198.51.100.1 ', 1, '198.51.100.1'],
  ],
  'with two trusted proxies is the second to last entry': [
    ['10.0.0.1', '198.51.100.1, 10.0.0.2', 2, '198.51.100.1'],
    ['10.0.0.1', '192.0.2.66, 198.51.100.1, 10.0.0.2', 2, '198.51.100.1'],
  ],
  'is the first known one if there are fewer entries than trusted proxies': [
    ['10.0.0.1', '', 1, '10.0.0.1'],
    ['10.0.0.1', '', 2, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1', 2, '198.51.100.1'],
    ['10.0.0.1', '198.51.100.1', 10, '198.51.100.1'],
  ],
  'does not include a port': [
    ['10.0.0.1', '198.51.100.1:4711', 1, '198.51.100.1'],
    ['10.0.0.1', '[2001:db8:1:2:3::4]:443', 1, '2001:db8:1:2::/64'],
    ['10.0.0.1', '[2001:db8:1:2:3::4]', 1, '2001:db8:1:2::/64'],
  ],
  'is that of the proxy if the entry is not an IP address': [
    ['10.0.0.1', 'unknown', 1, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, rubbish', 1, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, ', 1, '10.0.0.1'],
    ['10.0.0.1', 'rubbish, 10.0.0.2', 2, '10.0.0.2'],
    ['10.0.0.1', '300.1.1.1', 1, '10.0.0.1'],
  ],
  'is an IPv4 address if it is mapped to IPv6': [
    ['::ffff:203.0.113.7', '', 0, '203.0.113.7'],
    ['::ffff:cb00:7107', '', 0, '203.0.113.7'],
    ['::1', '::ffff:198.51.100.1', 1, '198.51.100.1'],
  ],
  'is the /64 network of an IPv6 address, in any notation': [
    ['2001:db8:1:2:3:4:5:6', '', 0, '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '', 0, '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff:ffff:ffff:ffff', '', 0, '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '', 0, '2001:db8:1:3::/64'],
    ['::1', '', 0, '::/64'],
    ['fe80::1%eth0', '', 0, 'fe80::/64'],
    ['10.0.0.1', '2001:db8:1:2::9', 1, '2001:db8:1:2::/64'],
  ],
}

describe('the client address', () => {
  for (const [guarantee, cases] of Object.entries(CASES)) {
    it(guarantee, () => {
      for (const [connection, forwardedFor, proxies, expected] of cases) {
        expect(resolveClientAddress(connection, forwardedFor, proxies), `${connection} "${forwardedFor}" ${proxies}`).to.equal(expected)
      }
    })
  }
})

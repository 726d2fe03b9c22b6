import ipaddr from 'ipaddr.js'

/** A network operator hands an IPv6 customer a /64 at the least: its addresses are one client. */
const IPV6_PREFIX_BITS = 64

/**
 * The address that a failed authentication is charged to: an IPv4 address, or the /64 network of an IPv6 one.
 * Of `X-Forwarded-For` only what the `trustedHops` nearest proxies wrote is believed, counted from the right.
 */
export function clientAddress(socketAddress: string, forwardedFor: string, trustedHops: number): string {
  const hops = [...forwardedFor.split(',').map((entry) => withoutPort(entry.trim())), socketAddress]
  const trusted = hops.slice(-1 - trustedHops).filter((entry) => ipaddr.isValid(entry))
  return network(trusted[0] ?? socketAddress)
}

function network(text: string): string {
  if (!ipaddr.isValid(text)) return text
  const address = ipaddr.process(text)
  if (address.kind() === 'ipv4') return address.toString()
  const upperHalf = address.toByteArray().map((byte, index) => (index < IPV6_PREFIX_BITS / 8 ? byte : 0))
  return `${ipaddr.fromByteArray(upperHalf).toString()}/${IPV6_PREFIX_BITS}`
}

/** Some proxies write `192.0.2.1:4711` and `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  return entry.replace(/^\[([^\]]*)\](:\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
}

import ipaddr from 'ipaddr.js'

/** The URL, without a path, of a server that listens on this IP address or host name. */
export function toServerUrl(host: string, port: number): string {
  return `http://${toUrlHost(host)}:${port}`
}

function toUrlHost(host: string): string {
  if (!ipaddr.isValid(host)) return host
  // A dual-stack socket reports IPv4 addresses as ::ffff:192.0.2.1.
  const address = ipaddr.process(host)
  // A client cannot connect to the unspecified IP address (0.0.0.0 or ::).
  if (address.range() === 'unspecified') return 'localhost'
  return address.kind() === 'ipv6' ? `[${address.toString()}]` : address.toString()
}

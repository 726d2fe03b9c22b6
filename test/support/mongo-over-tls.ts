import type { TlsServerOptions } from './certificate-authority.js'
import { aMongoDatabase } from './engines/mongo-engine.js'
import { skipFor } from './skip.js'
import { startFaultInjectionProxy } from './fault-injection-proxy.js'

/** A database of a suite behind a TLS proxy that requires client certificates. */
export interface MongoOverTls {
  /** Adds these options to those of the server. */
  url(host: string, tlsOptions: Readonly<Record<string, string>>): string
  drop(): Promise<void>
}

/** For a `before` hook, like `aMongoDatabase`. */
export async function aMongoDatabaseOverTls(context: Mocha.Context, options: TlsServerOptions): Promise<MongoOverTls> {
  const database = await aMongoDatabase(context)
  const parts = /^mongodb:\/\/(?<user>[^/?@]*@)?(?<host>[^/?,:]+)(?::(?<port>\d+))?[^/?]*(?<path>\/[^?]*)(?:\?(?<query>.*))?$/.exec(
    database.url,
  )
  const { user = '', host = '', port = '27017', path = '', query = '' } = parts?.groups ?? {}
  const serverOptions = new URLSearchParams(query)
  if (!parts || serverOptions.has('tls') || serverOptions.has('ssl')) skipFor(context, 'MONGODB_URL is not mongodb://host without TLS')
  const proxy = await startFaultInjectionProxy(`tcp://${host}:${port}`, { tls: options })
  return {
    url(proxyHost, tlsOptions) {
      const all = new URLSearchParams(query)
      // Without it, the driver would connect to the members of the replica set instead of the proxy.
      for (const [name, value] of Object.entries({ directConnection: 'true', ...tlsOptions })) all.set(name, value)
      return `mongodb://${user}${proxyHost}:${proxy.port}${path}?${all}`
    },
    async drop() {
      await proxy.close()
      await database.drop()
    },
  }
}

import { ContainerModule } from 'inversify'
import type { DestinationStream } from 'pino'
import { pino } from 'pino'
import { CryptoApiKeySecrets } from '../adapters/node/crypto-api-key-secrets.js'
import { SystemClock } from '../adapters/node/system-clock.js'
import type { Config } from '../config.js'
import { TOKENS } from './tokens.js'

/** The clock, the generator of API key secrets and the logger. */
export function nodeModule({ logLevel }: Config, logDestination: DestinationStream): ContainerModule {
  return new ContainerModule(({ bind }) => {
    bind(TOKENS.clock).toResolvedValue(() => new SystemClock())
    bind(TOKENS.secrets).toResolvedValue(() => new CryptoApiKeySecrets())
    bind(TOKENS.log).toResolvedValue(() => pino({ level: logLevel, base: null }, logDestination))
  })
}

import { Container } from 'inversify'
import type { DestinationStream } from 'pino'
import type { Config } from '../config.js'
import { apiKeysModule } from './api-keys.js'
import { httpModule } from './http.js'
import { memoryModule } from './memory.js'
import { mongoModule } from './mongo.js'
import { nodeModule } from './node.js'
import { CommandParts, ServiceParts } from './parts.js'
import { redisModule } from './redis.js'

/** Wires the parts for embedded or distributed mode. Every part is a singleton and is created when it is first needed. */
export function makeContainer(config: Config, logDestination: DestinationStream = process.stdout): Container {
  const container = new Container({ defaultScope: 'Singleton' })
  container.load(nodeModule(config, logDestination), apiKeysModule(config), httpModule(config))
  if (config.distributed) container.load(mongoModule(config, config.distributed), redisModule(config, config.distributed))
  else container.load(memoryModule(config))
  container.bind(ServiceParts).toSelf()
  container.bind(CommandParts).toSelf()
  return container
}

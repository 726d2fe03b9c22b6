import type { ContainerModule } from 'inversify'
import { Container } from 'inversify'
import type { DestinationStream } from 'pino'
import type { Config } from '../config.js'
import { apiKeysModule } from './api-keys.js'
import { httpModule } from './http.js'
import { nodeModule } from './node.js'
import { CommandParts, ServiceParts } from './parts.js'
import { tracingModule } from './tracing.js'

/** Wires the parts for embedded or distributed mode. Every part is a singleton and is created when it is first needed. */
export async function makeContainer(config: Config, logDestination: DestinationStream = process.stdout): Promise<Container> {
  const container = new Container({ defaultScope: 'Singleton' })
  container.load(nodeModule(config, logDestination), tracingModule(), apiKeysModule(config), httpModule(config))
  container.load(...(await loadStorageModules(config)))
  container.bind(ServiceParts).toSelf()
  container.bind(CommandParts).toSelf()
  return container
}

/** Loads only the stores of the mode: the clients of MongoDB and Redis are large. */
async function loadStorageModules(config: Config): Promise<ContainerModule[]> {
  const { distributed } = config
  if (!distributed) {
    const { memoryModule } = await import('./memory.js')
    return [memoryModule(config)]
  }
  const { mongoModule } = await import('./mongo.js')
  const { redisModule } = await import('./redis.js')
  return [mongoModule(config, distributed), redisModule(config, distributed)]
}

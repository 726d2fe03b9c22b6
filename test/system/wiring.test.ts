import { ContainerModule } from 'inversify'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { inject, TOKENS } from '../../src/wiring/tokens.js'

/** The compiler checks these: an expected error that does not occur is itself an error. */
describe('the wiring', () => {
  it('does not compile if a part gets a dependency of the wrong type', () => {
    new ContainerModule(({ bind }) => {
      // @ts-expect-error: a pet store is bound as the store of orders
      bind(TOKENS.orders).toResolvedValue(() => new MemoryPetStore([]))
      // @ts-expect-error: a clock is passed as a connection to Redis
      bind(TOKENS.quotaControl).toResolvedValue(({ breaker }: { breaker: object }) => breaker, [TOKENS.clock])
      bind(TOKENS.metrics).toResolvedValue(
        // @ts-expect-error: the parameters are in another order than the tokens
        (health, log) => log.info(health.isReady) as never,
        [TOKENS.log, TOKENS.health],
      )
    })
  })

  it('does not compile if the type of a property differs from that of its token', () => {
    class Planted {
      // @ts-expect-error: a clock is injected as a number
      @inject(TOKENS.clock) readonly clock!: number
    }
    void Planted
  })
})

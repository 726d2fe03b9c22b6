import { Command, Option } from 'commander'
import type { Seed } from '../../core/use-cases/seed.js'
import { makeJsonOption, parseCount } from './options.js'

export interface SeedCommandDeps {
  /** Connects to the storage, runs `work` and disconnects. */
  readonly withSeed: (work: (seed: Seed) => Promise<void>) => Promise<void>
  readonly print: (text: string) => void
  /** Shows the progress bar if it is a terminal. */
  readonly progressStream: NodeJS.WriteStream
}

/** `petstore seed` */
export function makeSeedCommand({ withSeed, print, progressStream }: SeedCommandDeps): Command {
  return new Command('seed')
    .description('add sample pets and orders until the store contains the given numbers; safe to repeat, but do not run it concurrently')
    .addOption(new Option('--pets <n>', 'total number of pets').argParser(parseCount).default(1_000))
    .addOption(new Option('--orders <n>', 'total number of orders').argParser(parseCount).default(100))
    .addOption(makeJsonOption())
    .addHelpText('after', '\nRequires MONGODB_URL and REDIS_URL with the same values as the service.')
    .action(async ({ pets, orders, json }: { pets: number; orders: number; json?: true }) =>
      withSeed(async (seed) => {
        const { SingleBar } = await import('cli-progress')
        const bar = new SingleBar({
          format: '{bar} {percentage}% | {value} of {total} | {eta_formatted} left',
          stream: progressStream,
          clearOnComplete: true,
          // Otherwise cli-progress turns line wrapping off, and it stays off after Ctrl-C.
          linewrap: true,
        })
        const { petsAdded, ordersAdded } = await seed({ pets, orders }, (done, total) => {
          if (done > 0) bar.update(done)
          else if (total > 0) bar.start(total, 0)
        }).finally(() => bar.stop())
        print(json ? `${JSON.stringify({ petsAdded, ordersAdded })}\n` : `Added ${petsAdded} pets and ${ordersAdded} orders.\n`)
      }),
    )
}

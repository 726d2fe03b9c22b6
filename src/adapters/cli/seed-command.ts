import { SingleBar } from 'cli-progress'
import { Command, Option } from 'commander'
import type { Seed } from '../../core/use-cases/seed.js'
import { parseCount, jsonOption } from './options.js'

export interface SeedCommandDeps {
  /** Opens the store for one command and closes it afterwards. */
  readonly withSeed: (work: (seed: Seed) => Promise<void>) => Promise<void>
  readonly print: (text: string) => void
  /** Where the progress bar is drawn; nothing is drawn unless it is a terminal. */
  readonly progressTo: NodeJS.WriteStream
}

/** `petstore seed` */
export function makeSeedCommand({ withSeed, print, progressTo }: SeedCommandDeps): Command {
  return new Command('seed')
    .description(
      'fill the store with sample pets and orders up to these numbers; what is there already counts, so it is safe to repeat, one run at a time',
    )
    .addOption(new Option('--pets <n>', 'pets in all').argParser(parseCount).default(1_000))
    .addOption(new Option('--orders <n>', 'orders in all').argParser(parseCount).default(100))
    .addOption(jsonOption())
    .addHelpText('after', '\nNeeds MONGODB_URL and REDIS_URL, as the service has them.')
    .action(async ({ pets, orders, json }: { pets: number; orders: number; json?: true }) =>
      withSeed(async (seed) => {
        const bar = new SingleBar({
          format: '{bar} {percentage}% | {value} of {total} | {eta_formatted} left',
          stream: progressTo,
          clearOnComplete: true,
          // Switched off, it would stay off in the terminal of whoever ends this with Ctrl-C.
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

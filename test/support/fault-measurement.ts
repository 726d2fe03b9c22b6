import { expect } from 'chai'
import { countMostGranted, expectCompleteResponse, findSlowestMs } from './load-checks.js'
import type { Hit, LoadGenerator } from './load-generator.js'
import { countByStatus } from './load-generator.js'
import type { Caller, LoadMix } from './load-mix.js'
import { STATUSES } from './load-mix.js'
import type { ServiceProcess, Settings } from './process.js'
import { issueKey } from './process.js'
import { freeKeyWithTime, redisChanges, toUsage } from './replicas.js'
import { until } from './until.js'

const FREE_LIMIT = 60
/** The fault and the recovery must fit in the rest of the minute, so that one minute shows what was granted in total. */
const SECONDS_FOR_A_FAULT = 25

export interface Fault {
  readonly what: string
  readonly part: 'redis' | 'mongodb' | 'replicas'
  readonly begin: () => Promise<unknown>
  /** Whether the load has met the fault. By default, as soon as it has begun. */
  readonly isNoticed?: () => Promise<boolean>
  readonly end?: () => Promise<unknown>
  readonly isHealthy: () => Promise<boolean>
  /** The replica that the fault concerns: its connections may break and its responses may be late. */
  readonly disturbed?: () => ServiceProcess
}

export interface FaultOutcome {
  readonly hits: Readonly<Record<Caller, readonly Hit[]>>
  /** The most requests of the key with the free plan that one minute admitted, and how many are documented. */
  readonly granted: number
  readonly bound: number
  /** Requests of the key with quota left: admitted, and counted in Redis afterwards. */
  readonly admitted: number
  readonly counted: number
  /** How often the circuit breakers opened, each with at most one request of each key in flight. */
  readonly openings: number
  readonly disturbed: ServiceProcess | undefined
  /** The log lines of unexpected errors so far. */
  readonly internalErrors: readonly string[]
}

/** Resolves after another 100 responses. */
export async function untilLoadContinues(mix: LoadMix): Promise<void> {
  const before = mix.countResponses()
  await until('the load continues', () => mix.countResponses() >= before + 100, 20_000)
}

async function untilMoreHits({ hits }: LoadGenerator, count: number): Promise<void> {
  const before = hits.length
  await until('the load continues', () => hits.length >= before + count, 20_000)
}

async function untilWritersContinue({ writers: { written } }: LoadMix): Promise<void> {
  const before = written.length
  await until('the writers continue', () => written.length >= before + 8, 20_000)
}

/** Measures what the callers receive before, during and after a fault. `direct`: settings of commands, which the fault does not concern. */
export async function measureFault(mix: LoadMix, direct: Settings, fault: Fault): Promise<FaultOutcome> {
  mix.takeHits()
  const steadyKey = await issueKey(direct)
  const steady = mix.startLoad(steadyKey.key, 50)
  await until('the load has begun', () => steady.count(200) >= 50)
  const hotKey = await freeKeyWithTime(direct, SECONDS_FOR_A_FAULT)
  const hot = mix.startLoad(hotKey.key, 25)
  await until('a part of the limit is used', () => hot.count(200) >= 20)

  const { replicas } = mix
  const openingsBefore = await countOpenings(mix.replicas)
  const disturbed = fault.disturbed?.()
  const startMs = performance.now()
  await fault.begin()
  await until('the load meets the fault', fault.isNoticed ?? (async () => true), 20_000)
  // Replicas that grant more than their shares exceed the bound with these requests.
  if (fault.part === 'redis') await untilMoreHits(hot, 3 * FREE_LIMIT)
  if (fault.part !== 'mongodb') await untilLoadContinues(mix)
  await fault.end?.()
  const endMs = performance.now()
  await until('every replica is healthy', fault.isHealthy, 20_000)
  const healthyMs = performance.now()
  await untilWritersContinue(mix)
  await untilLoadContinues(mix)
  await Promise.all([mix.stopLoad(hot), mix.stopLoad(steady)])

  const openingsAfter = [...(await countOpenings(mix.replicas))]
  const openings = openingsAfter.reduce((sum, [replica, count]) => sum + count - (openingsBefore.get(replica) ?? 0), 0)
  const clients = Math.max(replicas.length, mix.replicas.length)
  const outcome: FaultOutcome = {
    hits: { ...mix.takeHits(), 'a key with quota left': steady.hits, 'a key that exhausts its minute': hot.hits },
    granted: countMostGranted(hot.hits, hotKey.keyId),
    // Without an outage of Redis, exactly the limit. Otherwise the replicas may also grant their shares and what was in flight.
    bound: openings === 0 ? FREE_LIMIT : 2 * FREE_LIMIT + clients + clients,
    admitted: steady.count(200),
    counted: (await toUsage(steadyKey.keyId, direct)).day.used,
    openings,
    disturbed,
    internalErrors: replicas.flatMap(({ logLines }) =>
      logLines.filter((line) => line.includes('internal_error') || line.includes('unexpected')),
    ),
  }
  console.error(
    [
      `Figures: ${fault.what}: ${Math.round(endMs - startMs)} ms, healthy ${Math.round(healthyMs - endMs)} ms after that`,
      `granted ${outcome.granted} of at most ${outcome.bound}`,
      `slowest response ${findSlowestMs(listUndisturbed(outcome))} ms`,
      `counted ${outcome.counted} of ${outcome.admitted}`,
      `circuit breakers opened ${openings} times`,
      ...Object.entries(outcome.hits).map(([caller, each]) => `${caller} ${JSON.stringify(countByStatus(each))}`),
    ].join('; '),
  )
  return outcome
}

/** Declares the tests of one fault. */
export function itKeepsItsPromises(getOutcome: () => FaultOutcome, { mayReturn503 = false, slowestMs = 1_000 } = {}): void {
  it(`each caller gets its documented statuses, ${mayReturn503 ? 'or 503' : 'and none gets 503'}`, () => {
    const { hits, disturbed, internalErrors } = getOutcome()
    for (const [caller, each] of Object.entries(hits)) {
      const allowed = [...STATUSES[caller as Caller], ...(mayReturn503 ? [503] : []), ...(disturbed ? [0] : [])]
      expect(allowed, [caller, ...internalErrors.slice(-2)].join('\n')).to.include.members(Object.keys(countByStatus(each)).map(Number))
    }
    const others = listUndisturbed(getOutcome()).filter(({ url }) => url !== '')
    expect(others.filter(({ status }) => status === undefined)).to.deep.equal([])
  })

  it('every response is complete and has a unique request ID', () => {
    const responses = Object.values(getOutcome().hits).flatMap((each) => each.filter(({ status }) => status !== undefined))
    for (const response of responses) expectCompleteResponse(response)
    expect(new Set(responses.map(({ headers }) => headers['x-request-id']))).to.have.property('size', responses.length)
  })

  it('a key gets no more requests per minute than documented', () => {
    const { granted, bound } = getOutcome()
    expect(granted).to.be.within(1, bound)
  })

  it('every granted request is counted once, except for those in flight', () => {
    const { admitted, counted, openings, disturbed } = getOutcome()
    expect(counted).to.be.within(admitted - openings, admitted + openings + (disturbed ? 1 : 0))
  })

  it(`no response takes longer than ${slowestMs} ms`, () => {
    expect(findSlowestMs(listUndisturbed(getOutcome()))).to.be.below(slowestMs)
  })
}

async function countOpenings(replicas: readonly ServiceProcess[]): Promise<Map<ServiceProcess, number>> {
  return new Map(await Promise.all(replicas.map(async (replica) => [replica, (await redisChanges(replica)).down] as const)))
}

/** Omits the responses of the replica that the fault concerns, and with such a replica those to writers, who use all replicas in turn. */
function listUndisturbed({ hits, disturbed }: FaultOutcome): Hit[] {
  const all = Object.values(hits).flat()
  return disturbed ? all.filter(({ url }) => url !== '' && url !== disturbed.url) : all
}

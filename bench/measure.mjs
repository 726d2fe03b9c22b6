import { readRedisCpuMicros } from './databases.mjs'
import { readCpuMicros } from './servers.mjs'

/**
 * Sends a load and returns what it cost, per request of the first group. `servers` are those whose CPU time counts. Throws if more than
 * `MAX_OTHER_SHARE` of the responses of a group have another status than its `status`.
 */
export async function measure({ generator, redis, servers, groups, seconds }) {
  const sumCpuMicros = () => servers.reduce((sum, { pid }) => sum + readCpuMicros(pid), 0)
  const serverBefore = sumCpuMicros()
  const redisBefore = redis && (await readRedisCpuMicros(redis))
  const { elapsedMs, cpuMicros, groups: measured } = await generator.generate({ groups, seconds })
  const redisMicros = redis && (await readRedisCpuMicros(redis)) - redisBefore
  const serverMicros = sumCpuMicros() - serverBefore
  for (const [index, { count, statuses }] of measured.entries()) requireStatus(groups[index].status, statuses, count)

  const [{ count, p50Ms, p99Ms }] = measured
  return {
    perSecond: (count * 1_000) / elapsedMs,
    serverMicros: serverMicros / count,
    ...(redis ? { redisMicros: redisMicros / count } : {}),
    generatorPercent: (cpuMicros / elapsedMs / 1_000) * 100,
    p50Ms,
    p99Ms,
  }
}

/** A key with low limits is admitted again when a window ends. */
const MAX_OTHER_SHARE = 0.05

function requireStatus(status, statuses, count) {
  const isExpected = (statuses[status] ?? 0) >= count * (1 - MAX_OTHER_SHARE)
  if (count === 0 || !isExpected) throw new Error(`Expected responses with status ${status}, received ${JSON.stringify(statuses)}`)
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2
}

/** The median with the minimum and the maximum. */
export function summarize(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

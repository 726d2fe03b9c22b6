import { readFileSync } from 'node:fs'

/** A metric that the service exposes or the docs describe. */
export interface Metric {
  readonly name: string
  readonly type: string
  readonly labels: ReadonlySet<string>
}

/** The metrics in the text format of Prometheus. Only samples show labels. */
export function parseMetrics(text: string): Metric[] {
  return [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => {
    const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'))
    const labels = [...samples].flatMap(([, pairs = '']) => [...pairs.matchAll(/(\w+)="/g)].map(([, label = '']) => label))
    return { name, type, labels: new Set(labels.filter((label) => label !== 'le')) }
  })
}

export interface DocumentedMetric extends Metric {
  readonly isOnlyDistributed: boolean
}

export function readDocumentedMetrics(): DocumentedMetric[] {
  const sections = readFileSync('docs/operations/metrics.md', 'utf8').split(/^## /m)
  return sections.flatMap((section) =>
    [...section.matchAll(/^\| `(\w+)` \| (\w+) \|(.*?)\| /gm)].map(([, name = '', type = '', labels = '']) => ({
      name,
      type,
      labels: new Set([...labels.replace(/\(.*?\)/g, '').matchAll(/`(\w+)`/g)].map(([, label = '']) => label)),
      isOnlyDistributed: section.includes('\nOnly in distributed mode.\n'),
    })),
  )
}

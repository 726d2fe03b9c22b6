import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { parse } from 'yaml'
import { readDocumentedMetrics } from '../support/metrics.js'

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}

interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string }[]
}

const read = (path: string) => readFileSync(path, 'utf8')
const rules = parse(read('config/prometheus/alerts.yml')) as { groups: { rules: Alert[] }[] }
const alerts = rules.groups.flatMap((group) => group.rules)
const { panels } = JSON.parse(read('config/grafana/dashboard.json')) as { panels: Panel[] }

/** By the name of the series. Another test compares the documented metrics with those of the service. */
const labelsBySeries = new Map(
  readDocumentedMetrics().flatMap(({ name, type, labels }) =>
    type === 'histogram'
      ? ([
          [`${name}_bucket`, new Set([...labels, 'le'])],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ] as const)
      : [[name, labels] as const],
  ),
)
/** Prometheus itself adds `up`, and these labels to every series. */
labelsBySeries.set('up', new Set())
const TARGET_LABELS = ['job', 'instance']
const OPERATORS = new Set(['or', 'and', 'unless', 'bool'])

/** What a query uses that no metric of the service has. */
function findUnknownNames(query: string): string[] {
  const withoutStrings = query.replace(/"[^"]*"/g, '')
  const grouping = [...withoutStrings.matchAll(/\b(?:by|on|ignoring) \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
  const bare = withoutStrings.replace(/\b(?:by|on|ignoring) \([^)]*\)|\[[^\]]*\]/g, '')
  const series = [...bare.matchAll(/\b([a-zA-Z_]\w*)\b(?! *\()(?:\{([^}]*)\})?/g)].filter(([, name = '']) => !OPERATORS.has(name))
  const names = series.map(([, name = '']) => name)
  const known = new Set([...TARGET_LABELS, ...names.flatMap((name) => [...(labelsBySeries.get(name) ?? [])])])
  const selected = series.flatMap(([, , selector = '']) => [...selector.matchAll(/(\w+) *[=!]/g)].map(([, label = '']) => label))
  return [...names.filter((name) => !labelsBySeries.has(name)), ...[...grouping, ...selected].filter((label) => !known.has(label))]
}

describe('config/prometheus/alerts.yml', () => {
  it('has alerts whose queries name only metrics and labels that the service exposes', () => {
    expect(alerts).to.have.lengthOf.at.least(10)
    for (const { alert, expr } of alerts) expect(findUnknownNames(expr), alert).to.deep.equal([])
  })

  it('has a severity, a summary and a section of the runbook for every alert', () => {
    const headings = [...read('docs/operations/runbook.md').matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
    for (const { alert, labels, annotations } of alerts) {
      expect(labels.severity, alert).to.be.oneOf(['critical', 'warning'])
      expect(annotations.summary, alert).to.be.a('string').and.not.equal('')
      expect(annotations.runbook_url).to.equal(`docs/operations/runbook.md#${alert.toLowerCase()}`)
      expect(headings).to.include(alert)
    }
  })

  it('has an alert for every section of the runbook that is named like one', () => {
    const sections = [...read('docs/operations/runbook.md').matchAll(/^## (Petstore\w+)$/gm)].map(([, heading]) => heading)
    expect(alerts.map(({ alert }) => alert)).to.have.members(sections)
  })

  it('is loaded by the example configuration, whose job name the alerts use', () => {
    const prometheus = parse(read('config/prometheus/prometheus.yml')) as { rule_files: string[]; scrape_configs: { job_name: string }[] }
    expect(prometheus.rule_files).to.deep.equal(['alerts.yml'])
    expect(prometheus.scrape_configs.map(({ job_name }) => job_name)).to.deep.equal(['petstore'])
    const jobs = alerts.flatMap(({ expr }) => [...expr.matchAll(/job="([^"]*)"/g)].map(([, job]) => job))
    expect([...new Set(jobs)]).to.deep.equal(['petstore'])
  })
})

describe('docs/operations', () => {
  it('names only metrics that the service exposes', () => {
    const pages = readdirSync('docs/operations').filter((file) => file.endsWith('.md'))
    const names = pages.flatMap((page) =>
      [...read(`docs/operations/${page}`).matchAll(/\b(?:petstore|nodejs|process|http_request)_\w+/g)].map(([name]) => name),
    )
    const known = new Set([...labelsBySeries.keys(), ...readDocumentedMetrics().map(({ name }) => name)])
    expect(names).to.have.lengthOf.at.least(50)
    expect(names.filter((name) => !known.has(name))).to.deep.equal([])
  })
})

describe('config/grafana/dashboard.json', () => {
  it('has panels whose queries name only metrics and labels that the service exposes', () => {
    const charts = panels.filter(({ type }) => type !== 'row')
    expect(charts).to.have.lengthOf.at.least(12)
    for (const { title, targets = [] } of charts) {
      expect(targets, title).to.have.lengthOf.at.least(1)
      for (const { expr } of targets) expect(findUnknownNames(expr), `${title}: ${expr}`).to.deep.equal([])
    }
  })

  it('has a different ID for every panel', () => {
    expect(new Set(panels.map(({ id }) => id))).to.have.property('size', panels.length)
  })

  it('fails the check of its queries if one names an unknown metric or label', () => {
    expect(findUnknownNames('sum by (colour) (rate(petstore_pets_total{job="petstore"}[5m]))')).to.deep.equal([
      'petstore_pets_total',
      'colour',
    ])
    expect(findUnknownNames('petstore_bans_total{owner="Acme"} == 1 or http_request_duration_seconds')).to.deep.equal([
      'http_request_duration_seconds',
      'owner',
    ])
  })
})

import { expect } from 'chai'
import type { TestResponse } from './api.js'

/** Checks the status, the content type, and that the body is an `Error` of the specification without extra fields. Returns its message. */
export function expectError(
  { status, headers, text }: Pick<TestResponse, 'status' | 'headers' | 'text'>,
  expected: number,
  code: string,
): string {
  expect({ status, text }).to.have.property('status', expected)
  expect(headers['content-type']).to.equal('application/json')
  const body = JSON.parse(text) as { code: string; message: string; status: number }
  expect(body).to.have.all.keys('code', 'message', 'status')
  expect(body).to.include({ code, status: expected })
  expect(body.message).to.be.a('string').and.match(/\S/)
  return body.message
}

export interface QuotaHeaders {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
}

/** Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`. Each must be a whole number. */
export function readQuotaHeaders({ headers }: Pick<TestResponse, 'headers'>): QuotaHeaders {
  const number = (name: string) => {
    expect(headers, name).to.have.property(name).that.matches(/^\d+$/)
    return Number(headers[name])
  }
  return { limit: number('x-ratelimit-limit'), remaining: number('x-ratelimit-remaining'), resetSeconds: number('x-ratelimit-reset') }
}

/** One window in the two fields of the IETF draft. */
export interface WindowFields {
  readonly quota: number
  readonly windowSeconds: number
  readonly remaining: number
  readonly resetInSeconds: number
}

/** Reads `RateLimit-Policy` and `RateLimit`, which must contain the same windows, by the name of the window. */
export function readRateLimitFields({ headers }: Pick<TestResponse, 'headers'>): Readonly<Record<string, WindowFields>> {
  const policies = parseItems(headers['ratelimit-policy'], /^"([a-z-]+)";q=(\d+);w=(\d+)$/)
  const states = parseItems(headers['ratelimit'], /^"([a-z-]+)";r=(\d+);t=(\d+)$/)
  expect(states.map(([name]) => name)).to.deep.equal(policies.map(([name]) => name))
  return Object.fromEntries(
    policies.map(([name = '', quota, windowSeconds], index) => {
      const [, remaining, resetInSeconds] = states[index] ?? []
      const fields = { quota, windowSeconds, remaining, resetInSeconds }
      return [name, Object.fromEntries(Object.entries(fields).map(([field, digits]) => [field, Number(digits)])) as unknown as WindowFields]
    }),
  )
}

function parseItems(field: string | string[] | undefined, shape: RegExp): string[][] {
  expect(field).to.be.a('string')
  return String(field)
    .split(', ')
    .map((item) => {
      expect(item).to.match(shape)
      return (shape.exec(item) ?? []).slice(1)
    })
}

/** The target of the link with this relation type, undefined if there is none. */
export function findLink(rel: string, { headers }: Pick<TestResponse, 'headers'>): string | undefined {
  const links = typeof headers['link'] === 'string' ? headers['link'].split(/, (?=<)/) : []
  const targets = links.flatMap((link) => {
    const [, target, relation] = /^<([^>]*)>; rel="([^"]*)"$/.exec(link) ?? []
    expect(target, `not a link: ${link}`).to.be.a('string')
    return relation === rel ? [target] : []
  })
  expect(targets).to.have.length.of.at.most(1)
  return targets[0]
}

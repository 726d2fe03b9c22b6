import { expect } from 'chai'
import type { TestResponse } from './api.js'

/** Checks that the answer is the specification's Error body and nothing more. Returns its message. */
export function expectError(
  { status, headers, text }: Pick<TestResponse, 'status' | 'headers' | 'text'>,
  wanted: number,
  code: string,
): string {
  expect({ status, text }).to.have.property('status', wanted)
  expect(headers['content-type']).to.equal('application/json')
  const body = JSON.parse(text) as { code: string; message: string; status: number }
  expect(body).to.have.all.keys('code', 'message', 'status')
  expect(body).to.include({ code, status: wanted })
  expect(body.message).to.be.a('string').and.match(/\S/)
  return body.message
}

export interface Triple {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
}

/** The X-RateLimit triple, each a whole number in plain decimal. */
export function readQuotaHeaders({ headers }: Pick<TestResponse, 'headers'>): Triple {
  const number = (name: string) => {
    expect(headers, name).to.have.property(name).that.matches(/^\d+$/)
    return Number(headers[name])
  }
  return { limit: number('x-ratelimit-limit'), remaining: number('x-ratelimit-remaining'), resetSeconds: number('x-ratelimit-reset') }
}

/** What the IETF draft's two fields say of one window. */
export interface WindowFields {
  readonly quota: number
  readonly windowSeconds: number
  readonly remaining: number
  readonly resetInSeconds: number
}

/** `RateLimit-Policy` and `RateLimit`, read to the letter and put together by the name of the window. */
export function readRateLimitFields({ headers }: Pick<TestResponse, 'headers'>): Readonly<Record<string, WindowFields>> {
  const policies = items(headers['ratelimit-policy'], /^"([a-z-]+)";q=(\d+);w=(\d+)$/)
  const states = items(headers['ratelimit'], /^"([a-z-]+)";r=(\d+);t=(\d+)$/)
  expect(states.map(([name]) => name)).to.deep.equal(policies.map(([name]) => name))
  return Object.fromEntries(
    policies.map(([name = '', quota, windowSeconds], index) => {
      const [, remaining, resetInSeconds] = states[index] ?? []
      const fields = { quota, windowSeconds, remaining, resetInSeconds }
      return [name, Object.fromEntries(Object.entries(fields).map(([field, digits]) => [field, Number(digits)])) as unknown as WindowFields]
    }),
  )
}

function items(field: string | string[] | undefined, shape: RegExp): string[][] {
  expect(field).to.be.a('string')
  return String(field)
    .split(', ')
    .map((item) => {
      expect(item).to.match(shape)
      return (shape.exec(item) ?? []).slice(1)
    })
}

/** The target of the link with this relation; undefined where there is none. */
export function findLink(rel: string, { headers }: Pick<TestResponse, 'headers'>): string | undefined {
  const links = typeof headers['link'] === 'string' ? headers['link'].split(/, (?=<)/) : []
  const targets = links.flatMap((link) => {
    const [, target, relation] = /^<([^>]*)>; rel="([^"]*)"$/.exec(link) ?? []
    expect(target, `is no link: ${link}`).to.be.a('string')
    return relation === rel ? [target] : []
  })
  expect(targets).to.have.length.of.at.most(1)
  return targets[0]
}

import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Plans } from '../src/core/plan.js'
import { parsePlans } from '../src/plans-file.js'

const PLANS: Plans = {
  plans: {
    free: { limits: { minute: 11, day: 12 }, mode: 'shadow' },
    pro: { limits: { minute: 13, day: 14 }, mode: 'enforce' },
    business: { limits: { minute: 15, day: 16 }, mode: 'enforce' },
    enterprise: { limits: { minute: 17, day: 18 }, mode: 'shadow' },
  },
  ban: { graceMs: 19, minStrikes: 20, firstMs: 21, longestMs: 22, forgetAfterMs: 23 },
  failedAuthenticationsPerMinute: 24,
}

describe('a plans file', () => {
  it('contains the plans of the interface specification in config/plans.json', () => {
    const { plans } = parsePlans(readFileSync('config/plans.json', 'utf8')) as Plans
    expect(plans).to.deep.equal({
      free: { limits: { minute: 60, day: 1000 }, mode: 'enforce' },
      pro: { limits: { minute: 300, day: 10_000 }, mode: 'enforce' },
      business: { limits: { minute: 1000, day: 100_000 }, mode: 'enforce' },
      enterprise: { mode: 'enforce' },
    })
  })

  it('is read completely; the mode defaults to enforce, and only enterprise may have no limits', () => {
    expect(parsePlans(JSON.stringify(PLANS))).to.deep.equal(PLANS)
    const free = { limits: { minute: 11, day: 12 } }
    const text = JSON.stringify({ ...PLANS, plans: { ...PLANS.plans, free, enterprise: {} } })
    const expected = { ...PLANS.plans, free: { ...free, mode: 'enforce' }, enterprise: { mode: 'enforce' } }
    expect((parsePlans(text) as Plans).plans).to.deep.equal(expected)
  })

  it('accepts limits up to 2^31 − 1, the maximum of the int32 quota headers, and a longest ban that equals the first', () => {
    for (const path of ['plans.free.limits.minute', 'plans.enterprise.limits.day', 'failedAuthenticationsPerMinute']) {
      expect(findProblemsWith(path, 2_147_483_647)).to.deep.equal([])
      expect(findProblemsWith(path, 2_147_483_648)[0]).to.include('2147483647')
    }
    expect(findProblemsWith('ban.longestMs', PLANS.ban.firstMs)).to.deep.equal([])
  })

  for (const [path, value, expected] of [
    ['plans.gold', { limits: { minute: 1, day: 2 } }, /^plans: .*gold/],
    ['bans', {}, /^the file: .*bans/],
    ['plans.pro.price', 7, /^plans\.pro: .*price/],
    ['plans.pro.limits.hour', 7, /^plans\.pro\.limits: .*hour/],
    ['ban.lastMs', 7, /^ban: .*lastMs/],
    ['plans.free.limits.minute', -1, /^plans\.free\.limits\.minute: must be/],
    ['plans.free.limits.day', 0, /^plans\.free\.limits\.day: must be/],
    ['plans.pro.limits.minute', 1.5, /^plans\.pro\.limits\.minute: must be/],
    ['plans.pro.limits.minute', '60', /^plans\.pro\.limits\.minute: must be/],
    ['plans.pro.limits.day', 1e300, /^plans\.pro\.limits\.day: must be/],
    ['plans.enterprise.limits.day', 2_147_483_648, /^plans\.enterprise\.limits\.day: must be/],
    ['plans.enterprise.limits', null, /^plans\.enterprise\.limits: ./],
    ['plans.business.limits.day', undefined, /^plans\.business\.limits\.day: must be/],
    ['plans.business.limits', undefined, /^plans\.business\.limits: ./],
    ['plans.pro', undefined, /^plans\.pro: ./],
    ['plans.enterprise', undefined, /^plans\.enterprise: ./],
    ['plans', undefined, /^plans: ./],
    ['plans.free.mode', 'off', /^plans\.free\.mode: ./],
    ['ban', undefined, /^ban: ./],
    ['ban.minStrikes', undefined, /^ban\.minStrikes: ./],
    ['ban.minStrikes', 0, /^ban\.minStrikes: ./],
    ['ban.graceMs', -1, /^ban\.graceMs: ./],
    ['ban.forgetAfterMs', -1, /^ban\.forgetAfterMs: ./],
    ['ban.firstMs', 0, /^ban\.firstMs: ./],
    ['ban.longestMs', 20, /^ban: longestMs must not be less than firstMs$/],
    ['failedAuthenticationsPerMinute', 0, /^failedAuthenticationsPerMinute: must be/],
    ['failedAuthenticationsPerMinute', 2_147_483_648, /^failedAuthenticationsPerMinute: must be/],
    ['failedAuthenticationsPerMinute', undefined, /^failedAuthenticationsPerMinute: must be/],
  ] satisfies [string, unknown, RegExp][]) {
    it(`is rejected with one problem that names the path: ${path} = ${JSON.stringify(value)}`, () => {
      const [problem, ...others] = findProblemsWith(path, value)
      expect(problem).to.match(expected)
      expect(others).to.deep.equal([])
    })
  }

  it('is rejected with all its problems at once', () => {
    const tree = [
      [['plans', 'free', 'limits', 'minute'], -1],
      [['plans', 'pro', 'limits'], undefined],
      [['ban', 'firstMs'], 0],
    ].reduce<unknown>((before, [path, value]) => change(before, path as string[], value), PLANS)
    expect(parsePlans(JSON.stringify(tree)))
      .to.have.property('problems')
      .with.lengthOf(3)
  })

  it('is rejected with one problem if it is not JSON or not an object', () => {
    for (const text of ['', '{', 'plans: {}', '{"plans":{},}', '// comment\n{}']) {
      const { problems } = parsePlans(text) as { problems: string[] }
      expect(problems).to.have.lengthOf(1)
      expect(problems[0]).to.match(/^not valid JSON: ./)
    }
    for (const text of ['null', '[]', '7', '"plans"']) expect(parsePlans(text)).to.have.property('problems').with.lengthOf(1)
  })
})

/** The problems of a plans file with this value at `path`. `undefined` removes the value. */
function findProblemsWith(path: string, value: unknown): readonly string[] {
  const parsed = parsePlans(JSON.stringify(change(PLANS, path.split('.'), value)))
  return 'problems' in parsed ? parsed.problems : []
}

function change(tree: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value
  const { [first]: before, ...others } = tree as Record<string, unknown>
  const after = change(before, rest, value)
  return after === undefined ? others : { ...others, [first]: after }
}

import { expect } from 'chai'
import type { PlanName, Plans } from '../../src/core/plan.js'
import { PLAN_NAMES, quotaRulesFor } from '../../src/core/plan.js'
import { anApiKey, somePlans } from '../support/builders.js'

const PLANS: Plans = somePlans({
  free: { limits: { minute: 1, day: 2 }, mode: 'enforce' },
  pro: { limits: { minute: 3, day: 4 }, mode: 'shadow' },
  business: { limits: { minute: 5, day: 6 }, mode: 'enforce' },
  enterprise: { mode: 'shadow' },
})

describe('the quota rules of a key', () => {
  for (const plan of PLAN_NAMES.filter((name) => PLANS.plans[name].limits)) {
    it(`without limits of its own are those of its plan: ${plan}`, () => {
      expect(quotaRulesFor(anApiKey('one', { plan }), PLANS)).to.deep.equal({ ...PLANS.plans[plan], ban: PLANS.ban })
    })
  }

  for (const plan of PLAN_NAMES) {
    it(`with limits of its own are these, in the mode of its plan: ${plan}`, () => {
      const limits = { minute: 7, day: 8 }
      expect(quotaRulesFor(anApiKey('one', { plan, limits }), PLANS)).to.deep.equal({
        limits,
        mode: PLANS.plans[plan].mode,
        ban: PLANS.ban,
      })
    })
  }

  it('cannot be had where neither the key nor its plan has limits: never unlimited, and the error names the key id and no more', () => {
    const plan: PlanName = 'enterprise'
    expect(() => quotaRulesFor(anApiKey('one', { plan }), PLANS))
      .to.throw(/key_one/)
      .with.property('message')
      .that.does.not.include(anApiKey().secretHash)
  })

  it('exist for four plans, which are all that there are', () => {
    expect(PLAN_NAMES).to.deep.equal(['free', 'pro', 'business', 'enterprise'])
  })
})

import { expect } from 'chai'
import type { PlanName, Plans } from '../../src/core/plan.js'
import { PLAN_NAMES, toQuotaRules } from '../../src/core/plan.js'
import { anApiKey, somePlans } from '../contracts/builders.js'

const PLANS: Plans = somePlans({
  free: { limits: { minute: 1, day: 2 }, mode: 'enforce' },
  pro: { limits: { minute: 3, day: 4 }, mode: 'shadow' },
  business: { limits: { minute: 5, day: 6 }, mode: 'enforce' },
  enterprise: { mode: 'shadow' },
})

describe('the quota rules of a key', () => {
  for (const plan of PLAN_NAMES) {
    it(`are its own limits, or else those of its plan, in the mode of its plan: ${plan}`, () => {
      const { limits: planLimits, mode } = PLANS.plans[plan]
      const limits = { minute: 7, day: 8 }
      expect(toQuotaRules(anApiKey('one', { plan, limits }), PLANS)).to.deep.equal({ limits, mode, ban: PLANS.ban })
      if (planLimits) expect(toQuotaRules(anApiKey('one', { plan }), PLANS)).to.deep.equal({ limits: planLimits, mode, ban: PLANS.ban })
    })
  }

  it('are an error, never unlimited, if neither the key nor its plan has limits; the error contains the key ID but not the hash', () => {
    const plan: PlanName = 'enterprise'
    expect(() => toQuotaRules(anApiKey('one', { plan }), PLANS))
      .to.throw(/key_one/)
      .with.property('message')
      .that.does.not.include(anApiKey().secretHash)
  })

  it('exist for the four plans free, pro, business and enterprise', () => {
    expect(PLAN_NAMES).to.deep.equal(['free', 'pro', 'business', 'enterprise'])
  })
})

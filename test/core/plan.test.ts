import { expect } from 'chai'
import type { Plans } from '../../src/core/plan.js'
import { PLAN_NAMES, toQuotaRules } from '../../src/core/plan.js'
import { anApiKey, somePlans } from '../support/builders.js'

const PLANS: Plans = somePlans({
  free: { limits: { minute: 1, day: 2 }, mode: 'enforce' },
  pro: { limits: { minute: 3, day: 4 }, mode: 'shadow' },
  business: { limits: { minute: 5, day: 6 }, mode: 'enforce' },
  enterprise: { mode: 'shadow' },
})

describe('the quota rules of a key', () => {
  for (const plan of PLAN_NAMES) {
    if (PLANS.plans[plan].limits) {
      it(`are those of its plan ${plan} if the key has no limits`, () => {
        expect(toQuotaRules(anApiKey('one', { plan }), PLANS)).to.deep.equal({ ...PLANS.plans[plan], ban: PLANS.ban })
      })
    }

    it(`combine its own limits with the mode of its plan ${plan}`, () => {
      const limits = { minute: 7, day: 8 }
      const rules = toQuotaRules(anApiKey('one', { plan, limits }), PLANS)
      expect(rules).to.deep.equal({ limits, mode: PLANS.plans[plan].mode, ban: PLANS.ban })
    })
  }

  it('do not exist if neither the key nor its plan has limits: the error names the key ID and no secret hash', () => {
    expect(() => toQuotaRules(anApiKey('one', { plan: 'enterprise' }), PLANS))
      .to.throw(/key_one/)
      .with.property('message')
      .that.does.not.include(anApiKey().secretHash)
  })

  it('exist for exactly four plans', () => expect(PLAN_NAMES).to.deep.equal(['free', 'pro', 'business', 'enterprise']))
})

import { expect } from 'chai'
import { DOCS_CONTENT_SECURITY_POLICY } from '../../src/adapters/http/hardening.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'

describe('the docs page', () => {
  let api: TestApi

  before(async () => {
    api = await startApi()
  })
  after(() => api.stop())

  it('is HTML under a policy that allows this origin only, and no script within the page', async () => {
    const page = await api.send('/docs')
    expect(page).to.include({ status: 200 })
    expect(page.headers).to.include({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': DOCS_CONTENT_SECURITY_POLICY,
    })
    expect(DOCS_CONTENT_SECURITY_POLICY)
      .to.match(/^default-src 'none'; script-src 'self';/)
      .and.to.not.match(/https?:|\*|unsafe-eval/)
    expect(page.text).to.not.match(/https?:\/\/|<script(?![^>]*\bsrc=")/)
  })

  it('gets all that it names from this service, with the types that a browser demands under nosniff', async () => {
    const page = await api.send('/docs')
    const scripts = [...page.text.matchAll(/<script src="([^"]+)"/g)].map(([, source = '']) => source)
    expect(scripts).to.deep.equal(['/docs/scalar.js', '/docs/start.js'])
    for (const script of scripts) {
      const answer = await api.send(script)
      expect(answer).to.include({ status: 200 })
      expect(answer.headers).to.include({ 'content-type': 'text/javascript; charset=utf-8', 'x-content-type-options': 'nosniff' })
      expect(answer.text).to.have.length.above(20)
    }
  })
})

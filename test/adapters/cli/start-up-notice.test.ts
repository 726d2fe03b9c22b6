import { expect } from 'chai'
import { formatStartUpNotice } from '../../../src/adapters/cli/start-up-notice.js'
import { somePlans } from '../../support/builders.js'

describe('the start-up notice of a service with MongoDB and Redis', () => {
  const notice = formatStartUpNotice({
    apiUrl: 'http://127.0.0.1:1001',
    adminUrl: 'http://127.0.0.1:1002',
    hasDocs: true,
    plans: somePlans(),
    demoKeys: [],
  })

  it('says where the data is stored', () => {
    expect(notice)
      .to.match(/\bMongoDB\b/)
      .and.match(/\bquotas in Redis\b/)
  })

  it('contains no key, but the command that issues one and the header that needs it', () => {
    expect(notice).to.not.match(/pst_live_|Demo keys/)
    expect(notice).to.include('petstore keys issue --plan free --owner <name>')
    expect(notice).to.include("curl -i -H 'Authorization: Bearer <API key>' http://127.0.0.1:1001/v1/pets")
  })

  it('contains the URLs of the API, the docs and the admin port', () => {
    for (const url of ['1001/v1\n', '1001/docs\n', '1002/metrics', '1002/health\n']) expect(notice).to.include(`http://127.0.0.1:${url}`)
  })
})

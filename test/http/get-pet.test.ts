import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import { aPet } from '../support/builders.js'
import { expectError } from '../support/responses.js'
import { useApi } from '../support/api.js'

describe('GET /v1/pets/{petId}', () => {
  const pets = new MemoryPetStore([...SAMPLE_PETS, aPet({ id: 9_007_199_254_740_991n })])
  const api = useApi({ doubles: { pets } })

  const get = (id: string) => api.call(`/v1/pets/${id}`)

  it('returns the pet', async () => {
    expect(await get('4')).to.include({ status: 200, text: '{"id":4,"name":"Bruno","categoryId":1,"status":"sold"}' })
  })

  it('returns a pet with the largest ID that the service assigns', async () => {
    expect((await get('9007199254740991')).text).to.match(/^\{"id":9007199254740991,/)
  })

  for (const id of '11 999999999 9007199254740990 9007199254740992 9223372036854775807 0 -1 -9223372036854775808'.split(' ')) {
    it(`returns 404 for the ID ${id}, which no pet has`, async () => void expectError(await get(id), 404, 'pet_not_found'))
  }

  for (const id of [
    ...'abc 1.5 1.0 1e0 9223372036854775808 -9223372036854775809 01 00 -0 +1 0x1 1n %201 1%20 1%00 %D9%A1 1%2F'.split(' '),
    ...'%zz %FF null {petId} 1;x=1 1,2'.split(' '),
    '9'.repeat(3000),
  ]) {
    it(`returns 404 for the ID ${id.slice(0, 30)}, which is not an int64`, async () =>
      void expectError(await get(id), 404, 'pet_not_found'))
  }

  it('returns 400 for query parameters, whether or not the pet exists', async () => {
    for (const id of ['1', '999']) {
      expect(expectError(await get(`${id}?status=sold&x=1`), 400, 'invalid_parameter')).to.match(/^status: [^;]+; x: [^;]+$/)
    }
  })

  it('returns 404 without a body for HEAD', async () => {
    expect(await api.call('/v1/pets/abc', { method: 'HEAD' })).to.include({ status: 404, text: '' })
  })
})

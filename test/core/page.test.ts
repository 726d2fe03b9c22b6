import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import type { PageRequest } from '../../src/core/page.js'
import { readPage } from '../../src/core/page.js'
import type { Pet, PetStatus } from '../../src/core/pet.js'
import { aPet } from '../support/builders.js'

const PETS = [1n, 2n, 3n, 5n, 8n].map((id) => aPet({ id, status: id < 5n ? 'available' : 'sold' }))
const [one, two, three, five, eight] = PETS as [Pet, Pet, Pet, Pet, Pet]

describe('a page', () => {
  const store = new MemoryPetStore(PETS)
  const page = (request: PageRequest<PetStatus>) => readPage((wider) => store.list(wider), request)

  it('before the last holds as many rows as wanted and says behind which id the next one begins', async () => {
    expect(await page({ limit: 2 })).to.deep.equal({ rows: [one, two], nextAfter: 2n })
    expect(await page({ limit: 2, after: 2n })).to.deep.equal({ rows: [three, five], nextAfter: 5n })
  })

  it('that is the last says nothing of a next one, be it short or full to the last row', async () => {
    expect(await page({ limit: 2, after: 5n })).to.deep.equal({ rows: [eight] })
    expect(await page({ limit: 2, after: 3n })).to.deep.equal({ rows: [five, eight] })
    expect(await page({ limit: 5 })).to.deep.equal({ rows: PETS })
    expect(await page({ limit: 100 })).to.deep.equal({ rows: PETS })
  })

  it('behind the last row is empty, and the last', async () => {
    expect(await page({ limit: 2, after: 8n })).to.deep.equal({ rows: [] })
  })

  it('of a status counts only the rows of that status', async () => {
    expect(await page({ limit: 2, status: 'available' })).to.deep.equal({ rows: [one, two], nextAfter: 2n })
    expect(await page({ limit: 1, status: 'available', after: 2n })).to.deep.equal({ rows: [three] })
    expect(await page({ limit: 1, status: 'sold' })).to.deep.equal({ rows: [five], nextAfter: 5n })
    expect(await page({ limit: 1, status: 'pending' })).to.deep.equal({ rows: [] })
  })

  it('is read in one go', async () => {
    const asked: PageRequest<PetStatus>[] = []
    await readPage(
      (wider) => {
        asked.push(wider)
        return store.list(wider)
      },
      { limit: 2, status: 'sold', after: 1n },
    )
    expect(asked).to.deep.equal([{ limit: 3, status: 'sold', after: 1n }])
  })
})

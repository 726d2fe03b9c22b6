import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import type { PageRequest } from '../../src/core/page.js'
import { readPage } from '../../src/core/page.js'
import type { PetStatus } from '../../src/core/pet.js'
import { aPet } from '../support/builders.js'

const PETS = [1n, 2n, 3n, 5n, 8n].map((id) => aPet({ id, status: id < 5n ? 'available' : 'sold' }))

describe('a page', () => {
  const cases: [string, PageRequest<PetStatus>, ids: bigint[], nextAfter?: bigint][] = [
    ['has the ID after which the next page starts', { limit: 2 }, [1n, 2n], 2n],
    ['starts after the given ID', { limit: 2, after: 2n }, [3n, 5n], 5n],
    ['has no next page if it is short', { limit: 2, after: 5n }, [8n]],
    ['has no next page if it ends with the last row', { limit: 2, after: 3n }, [5n, 8n]],
    ['has no next page if it contains all rows', { limit: 5 }, [1n, 2n, 3n, 5n, 8n]],
    ['can be shorter than its limit', { limit: 100 }, [1n, 2n, 3n, 5n, 8n]],
    ['is empty after the last row', { limit: 2, after: 8n }, []],
    ['contains only rows with the given status', { limit: 2, status: 'available' }, [1n, 2n], 2n],
    ['has no next page if all following rows have another status', { limit: 1, status: 'available', after: 2n }, [3n]],
    ['skips rows with another status', { limit: 1, status: 'sold' }, [5n], 5n],
    ['is empty if no row has the status', { limit: 1, status: 'pending' }, []],
  ]
  for (const [guarantee, request, ids, nextAfter] of cases) {
    it(guarantee, async () => {
      const queries: PageRequest<PetStatus>[] = []
      const store = new MemoryPetStore(PETS)
      const page = await readPage((query) => {
        queries.push(query)
        return store.list(query)
      }, request)
      expect(page).to.deep.equal({ rows: PETS.filter(({ id }) => ids.includes(id)), ...(nextAfter === undefined ? {} : { nextAfter }) })
      expect(queries, 'one query').to.deep.equal([{ ...request, limit: request.limit + 1 }])
    })
  }
})

import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import type { PetIds } from '../../src/core/ports/pet-ids.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

/** `open` makes IDs begin after `last`, which is 0 or more. Use blocks of fewer than 100 IDs. */
export function describePetIds(name: string, open: (last: bigint) => Promise<OpenAdapter<PetIds>>, outage?: Outage): void {
  describe(`the pet IDs ${name}`, () => {
    let opened: OpenAdapter<PetIds> | undefined

    afterEach(async () => {
      await opened?.close()
      opened = undefined
    })

    async function openAfter(last: bigint): Promise<OpenAdapter<PetIds>> {
      opened = await open(last)
      return opened
    }

    it('are bigints of 1 or more', async () => {
      const { port: petIds } = await openAfter(0n)
      for (let count = 0; count < 300; count++) {
        const id = await petIds.next()
        expect(id).to.be.a('bigint')
        expect(id >= 1n && id <= MAX_ASSIGNED_ID).to.equal(true)
      }
    })

    it('are greater than all IDs that were assigned before', async () => {
      const { port: petIds } = await openAfter(2n ** 32n)
      for (let count = 0; count < 300; count++) expect((await petIds.next()) > 2n ** 32n).to.equal(true)
    })

    it('are unique for 1,000 concurrent requests on two replicas', async () => {
      const { port, reopen } = await openAfter(0n)
      const replicas = [port, await reopen()] as const
      const ids = await Promise.all(Array.from({ length: 1000 }, (_, index) => (replicas[index % 2] as PetIds).next()))
      expect(new Set(ids).size).to.equal(1000)
    })

    it('are unique on eight replicas that start concurrently', async () => {
      const { reopen } = await openAfter(0n)
      const ids = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const petIds = await reopen()
          return Promise.all(Array.from({ length: 20 }, () => petIds.next()))
        }),
      )
      expect(new Set(ids.flat()).size).to.equal(160)
    })

    it('are unique across restarts, however few are used before each', async () => {
      const { port, reopen } = await openAfter(0n)
      const ids = [await port.next()]
      for (const used of [1, 2, 0, 3, 70, 1]) {
        const petIds = await reopen()
        for (let count = 0; count < used; count++) ids.push(await petIds.next())
      }
      expect(new Set(ids).size).to.equal(ids.length)
    })

    it('end at 2^53 − 1: then every call throws, but reports no outage', async () => {
      const { port: petIds } = await openAfter(MAX_ASSIGNED_ID - 5n)
      const results = await Promise.allSettled(Array.from({ length: 20 }, () => petIds.next()))
      const ids = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      expect(ids.length).to.be.at.most(5)
      expect(new Set(ids).size).to.equal(ids.length)
      for (const id of ids) expect(id > MAX_ASSIGNED_ID - 5n && id <= MAX_ASSIGNED_ID).to.equal(true)
      for (let count = 0; count < 3; count++) {
        expect(await rejection(petIds.next()))
          .to.be.instanceOf(Error)
          .and.not.instanceOf(StoreUnavailable)
      }
    })
  })
  if (outage) describePetIdsOutages(name, open, outage)
}

export function describePetIdsOutages(name: string, open: (last: bigint) => Promise<OpenAdapter<PetIds>>, outage: Outage): void {
  describe(`the pet IDs ${name}, during an outage`, () => {
    let opened: OpenAdapter<PetIds>

    beforeEach(async () => {
      opened = await open(0n)
    })

    afterEach(async () => {
      await outage.end()
      await opened.close()
    })

    it('continue only within reserved blocks, then throw StoreUnavailable, and are unique after the outage', async () => {
      const { port: petIds } = opened
      const ids = [await petIds.next()]
      await outage.begin()
      let rejection: unknown
      for (let count = 0; count < 300 && rejection === undefined; count++) {
        await petIds.next().then(
          (id) => ids.push(id),
          (reason: unknown) => {
            rejection = reason
          },
        )
      }
      expect(rejection).to.be.instanceOf(StoreUnavailable)
      await outage.end()
      ids.push(await petIds.next())
      expect(new Set(ids).size).to.equal(ids.length)
    })
  })
}

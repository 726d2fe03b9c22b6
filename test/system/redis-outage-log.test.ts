import { expect } from 'chai'
import { readConfig } from '../../src/config.js'
import { makeContainer } from '../../src/wiring/container.js'
import { ServiceParts } from '../../src/wiring/parts.js'
import { freePort } from '../support/engines/free-port.js'
import { PREFIX } from '../support/redis-replica.js'

describe('the wiring of Redis', () => {
  it('logs why Redis is unavailable, once, and counts the change', async () => {
    const logLines: Record<string, unknown>[] = []
    const redisUrl = `redis://:hunter2@127.0.0.1:${await freePort()}`
    const config = { ...readConfig({}), distributed: { mongodbUrl: 'mongodb://127.0.0.1:1/petstore', redisUrl, redisPrefix: PREFIX } }
    const container = await makeContainer(config, { write: (line) => void logLines.push(JSON.parse(line)) })
    const parts = container.get(ServiceParts)
    const redis = parts.backingServices.find(({ name }) => name === 'redis')
    await redis?.prepare('serve')
    try {
      const [outage, ...others] = logLines
      expect(outage).to.deep.include({ level: 40, msg: 'Redis is unavailable: this replica grants its share of the quotas' })
      expect(outage?.['reason']).to.match(/^connect ECONNREFUSED 127\.0\.0\.1:\d+$/)
      expect(others).to.deep.equal([])
      expect(await parts.metrics.registry.metrics()).to.include('petstore_redis_changes_total{to="down"} 1')
      expect(JSON.stringify(logLines)).not.to.include('hunter2')
    } finally {
      await redis?.close()
    }
  })
})

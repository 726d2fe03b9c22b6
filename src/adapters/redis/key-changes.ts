import type { RedisClient } from './redis-client.js'

const CHANNEL = 'petstore:key-changed'

/**
 * Tells all replicas at once that something of a key was changed. Only refusals that are remembered for a second hang on it: a message
 * that is lost delays the change by that second.
 */
export class KeyChanges {
  /** `subscriber`: a connection for nothing else. */
  constructor(
    private readonly publisher: RedisClient,
    private readonly subscriber: RedisClient,
  ) {}

  async publish(keyId: string): Promise<void> {
    await this.publisher.publish(CHANNEL, keyId)
  }

  /** While there is no connection nothing is heard; each new one is subscribed again. */
  subscribe(onChange: (keyId: string) => void): void {
    const retried = () => {}
    this.subscriber.on('error', retried)
    this.subscriber.on('ready', () => void this.subscriber.subscribe(CHANNEL).catch(retried))
    this.subscriber.on('message', (_channel: string, keyId: string) => onChange(keyId))
    this.subscriber.connect().catch(retried)
  }

  close(): void {
    this.subscriber.disconnect()
  }
}

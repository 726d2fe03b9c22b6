import type { RedisClient } from './redis-client.js'

const CHANNEL = 'petstore:key-changed'

/**
 * Tells all replicas at once that something of a key was changed. Only refusals that are remembered for a second hang on it: a message
 * that is lost delays the change by that second.
 */
export class KeyChanges {
  readonly #publisher: RedisClient
  readonly #subscriber: RedisClient

  /** `subscriber`: a connection for nothing else. */
  constructor({ publisher, subscriber }: { publisher: RedisClient; subscriber: RedisClient }) {
    this.#publisher = publisher
    this.#subscriber = subscriber
    // The client tries again by itself, and a message is worth no more than one attempt.
    subscriber.on('error', ignore)
    subscriber.on('ready', () => void subscriber.subscribe(CHANNEL).catch(ignore))
  }

  /** Never rejects. */
  async publish(keyId: string): Promise<void> {
    await this.#publisher.publish(CHANNEL, keyId).catch(ignore)
  }

  onChange(listener: (keyId: string) => void): void {
    this.#subscriber.on('message', (_channel: string, keyId: string) => listener(keyId))
  }

  listen(): void {
    this.#subscriber.connect().catch(ignore)
  }

  close(): void {
    this.#subscriber.disconnect()
  }
}

function ignore(): void {}

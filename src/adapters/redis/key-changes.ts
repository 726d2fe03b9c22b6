import type { RedisClient } from './redis-client.js'

const CHANNEL = 'petstore:key-changed'

export interface KeyChange {
  /** Its ban was lifted: what its replicas still hold against it is forgotten, too. */
  readonly pardoned: boolean
}

const PARDONED = 'pardoned '

/**
 * Tells all replicas at once that something of a key was changed. Only rejections that are remembered for a second hang on it: a message
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
  async publish(keyId: string, { pardoned }: KeyChange = { pardoned: false }): Promise<void> {
    await this.#publisher.publish(CHANNEL, `${pardoned ? PARDONED : ''}${keyId}`).catch(ignore)
  }

  onChange(listener: (keyId: string, change: KeyChange) => void): void {
    this.#subscriber.on('message', (_channel: string, message: string) => {
      const pardoned = message.startsWith(PARDONED)
      listener(pardoned ? message.slice(PARDONED.length) : message, { pardoned })
    })
  }

  listen(): void {
    this.#subscriber.connect().catch(ignore)
  }

  close(): void {
    this.#subscriber.disconnect()
  }
}

function ignore(): void {}

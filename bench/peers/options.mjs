import { Redis } from 'ioredis'

/**
 * - `redisUrl`: where the peer counts requests. If absent, it counts in memory.
 * - `mongodbUrl`: where the pets and API keys are. If absent, `keys` lists the API keys, and `GET /v1/pets` returns `PETS`.
 */
export const options = JSON.parse(process.env.PEER_OPTIONS)

/** Constant pets, for scenes without MongoDB. */
export const PETS = Array.from({ length: 20 }, (_, index) => ({
  id: index + 1,
  name: `Pet ${index + 1}`,
  categoryId: 1,
  status: 'available',
}))

export const UNAUTHENTICATED = { code: 'invalid_api_key', message: 'The API key is not valid.', status: 401 }
export const NOT_FOUND = { code: 'pet_not_found', message: 'The pet does not exist.', status: 404 }
export const TOO_MANY_REQUESTS = { code: 'rate_limit_exceeded', message: 'The limit of requests per minute is reached.', status: 429 }

export function connectToRedis() {
  return options.redisUrl === undefined ? undefined : new Redis(options.redisUrl)
}

/** The `Link` header of a page, if there is a next one. `rows` has one row more than the page in that case. */
export function toNextLink(rows, limit) {
  return rows.length > limit ? `</v1/pets?limit=${limit}&after=${rows[limit - 1]._id}>; rel="next"` : undefined
}

export function toPet({ _id, name, categoryId, status }) {
  return { id: _id, name, categoryId, status }
}

/** Prints the same line as the service. */
export function announce(port) {
  console.log(`Listening on  http://127.0.0.1:${port}/v1`)
}

// Fastify with its own rate limit plugin and its default log: two lines per request.
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { MongoClient } from 'mongodb'
import { authenticate } from './authenticate.mjs'
import { announce, connectToRedis, NOT_FOUND, options, PETS, toNextLink, toPet, UNAUTHENTICATED } from './options.mjs'

const mongo = options.mongodbUrl === undefined ? undefined : await new MongoClient(options.mongodbUrl).connect()
const apiKeys = mongo?.db().collection('apiKeys')
const pets = mongo?.db().collection('pets')
/** New pets get an ObjectId, so they are not in the collection of the pets whose IDs are numbers. */
const created = mongo?.db().collection('created')
await created?.createIndex({ status: 1, _id: 1 })

const newPet = {
  type: 'object',
  required: ['name', 'categoryId'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 200 },
    categoryId: { type: 'integer' },
    status: { type: 'string', enum: ['available', 'pending', 'sold'], default: 'available' },
  },
}
const pet = (id) => ({ type: 'object', properties: { id, ...newPet.properties } })
const listQuery = {
  type: 'object',
  properties: { limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 }, after: { type: 'integer' } },
}

const app = Fastify({ logger: true })
app.decorateRequest('apiKey', null)
app.addHook('onRequest', async (request, reply) => {
  request.apiKey = await authenticate(request.headers.authorization, apiKeys)
  if (!request.apiKey) return reply.code(401).send(UNAUTHENTICATED)
})
await app.register(rateLimit, {
  max: (request) => request.apiKey.limits.minute,
  timeWindow: 60_000,
  keyGenerator: (request) => request.apiKey.keyId,
  redis: connectToRedis(),
})

app.get(
  '/v1/pets',
  { schema: { querystring: listQuery, response: { 200: { type: 'array', items: pet({ type: 'integer' }) } } } },
  async ({ query: { limit, after } }, reply) => {
    if (!pets) return PETS
    const filter = after === undefined ? {} : { _id: { $gt: after } }
    const rows = await pets
      .find(filter)
      .sort({ _id: 1 })
      .limit(limit + 1)
      .toArray()
    const link = toNextLink(rows, limit)
    if (link) reply.header('Link', link)
    return rows.slice(0, limit).map(toPet)
  },
)
app.get('/v1/pets/:petId', async (_request, reply) => reply.code(404).send(NOT_FOUND))
app.post('/v1/pets', { schema: { body: newPet, response: { 201: pet({ type: 'string' }) } } }, async ({ body }, reply) => {
  const { insertedId } = await created.insertOne({ name: body.name, categoryId: body.categoryId, status: body.status })
  const id = insertedId.toHexString()
  return reply
    .code(201)
    .header('Location', `/v1/pets/${id}`)
    .send({ id, ...body })
})

await app.listen({ port: 0, host: '127.0.0.1' })
announce(app.server.address().port)

// Express with express-rate-limit, Mongoose, and morgan's `combined` log: one line per request.
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import mongoose from 'mongoose'
import morgan from 'morgan'
import { RedisStore } from 'rate-limit-redis'
import { authenticate } from './authenticate.mjs'
import { announce, connectToRedis, NOT_FOUND, options, PETS, TOO_MANY_REQUESTS, toNextLink, toPet, UNAUTHENTICATED } from './options.mjs'

const redis = connectToRedis()
const mongo = options.mongodbUrl === undefined ? undefined : await mongoose.connect(options.mongodbUrl)
const apiKeys = mongo?.connection.collection('apiKeys')

const STATUSES = ['available', 'pending', 'sold']
const fields = {
  name: { type: String, required: true, maxlength: 200 },
  categoryId: { type: Number, required: true },
  status: { type: String, enum: STATUSES, default: 'available' },
}
const Pet = mongoose.model('Pet', new mongoose.Schema({ _id: Number, ...fields }, { autoIndex: false, collection: 'pets' }))
/** New pets get an ObjectId, so they are not in the collection of the pets whose IDs are numbers. */
const CreatedPet = mongoose.model(
  'CreatedPet',
  new mongoose.Schema(fields, { collection: 'created', versionKey: false }).index({ status: 1, _id: 1 }),
)

const app = express()
app.use(morgan('combined'))
app.use(async (request, response, next) => {
  request.apiKey = await authenticate(request.headers.authorization, apiKeys)
  if (request.apiKey) next()
  else response.status(401).json(UNAUTHENTICATED)
})
app.use(
  rateLimit({
    limit: (request) => request.apiKey.limits.minute,
    windowMs: 60_000,
    keyGenerator: (request) => request.apiKey.keyId,
    legacyHeaders: true,
    standardHeaders: 'draft-8',
    message: TOO_MANY_REQUESTS,
    ...(redis ? { store: new RedisStore({ sendCommand: (command, ...args) => redis.call(command, ...args) }) } : {}),
  }),
)

app.get('/v1/pets', async (request, response) => {
  if (!mongo) return response.json(PETS)
  const limit = Number(request.query.limit ?? 20)
  const filter = request.query.after === undefined ? {} : { _id: { $gt: Number(request.query.after) } }
  const rows = await Pet.find(filter)
    .sort({ _id: 1 })
    .limit(limit + 1)
    .lean()
  const link = toNextLink(rows, limit)
  if (link) response.set('Link', link)
  return response.json(rows.slice(0, limit).map(toPet))
})
app.get('/v1/pets/:petId', (_request, response) => response.status(404).json(NOT_FOUND))
app.post('/v1/pets', express.json(), async (request, response) => {
  const created = await CreatedPet.create(request.body)
  response.status(201).location(`/v1/pets/${created.id}`).json(toPet(created))
})

const server = app.listen(0, '127.0.0.1', () => announce(server.address().port))

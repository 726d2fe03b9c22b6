// Koa and its router without key check, quota or log: what the framework itself costs.
import Router from '@koa/router'
import Koa from 'koa'
import { announce, NOT_FOUND, PETS } from './options.mjs'

const router = new Router()
router.get('/v1/pets', (ctx) => {
  ctx.body = PETS
})
router.get('/v1/pets/:petId', (ctx) => {
  ctx.status = 404
  ctx.body = NOT_FOUND
})

const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => announce(server.address().port))

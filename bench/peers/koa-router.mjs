// The routes of both Koa peers. They need no MongoDB.
import Router from '@koa/router'
import { NOT_FOUND, PETS } from './options.mjs'

export const router = new Router()
router.get('/v1/pets', (ctx) => {
  ctx.body = PETS
})
router.get('/v1/pets/:petId', (ctx) => {
  ctx.status = 404
  ctx.body = NOT_FOUND
})

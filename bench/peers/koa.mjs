// Koa and its router without key check, quota or log: what the framework itself costs.
import Koa from 'koa'
import { router } from './koa-router.mjs'
import { announce } from './options.mjs'

const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => announce(server.address().port))

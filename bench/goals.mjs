import { EXPRESS, FASTIFY, KOA, PETSTORE } from './servers.mjs'
import { toDeepName, toReplicasName } from './scenes.mjs'

/** The rate must be at least `factor` times that of the peer, and the CPU time per request at most 1/`factor` of the peer's. */
function beats(scene, peer, factor, ours = PETSTORE) {
  return [
    { scene, ours, peer, metric: 'perSecond', atLeast: factor },
    { scene, ours, peer, metric: 'serverMicros', atMost: 1 / factor },
  ]
}

/** Without a `peer`, the goal is about the value itself. With one, it is about the ratio. */
export const GOALS = [
  ...beats('one-key', FASTIFY, 1),
  ...beats('one-key', KOA, 0.8),
  ...beats('thousand-keys', FASTIFY, 1),
  ...beats('list-same-page', FASTIFY, 1.5),
  ...beats('list-same-page', EXPRESS, 3),
  ...beats('list-different-pages', FASTIFY, 1.1),
  ...beats('create', FASTIFY, 1),
  ...beats('exhausted-key', PETSTORE, 1.5, `${PETSTORE}, exhausted key`),
  { scene: 'exhausted-key', ours: `${PETSTORE}, exhausted key`, metric: 'othersP99Ratio', atMost: 2 },
  { scene: 'deep-page', ours: toDeepName(PETSTORE, true), peer: toDeepName(PETSTORE, false), metric: 'serverMicros', atMost: 1.2 },
  { scene: 'deep-page', ours: toDeepName(PETSTORE, true), peer: toDeepName(PETSTORE, false), metric: 'fixedP50Ms', atMost: 1.2 },
  { scene: 'redis-memory', ours: PETSTORE, metric: 'bytesPerKey', atMost: 200 },
  { scene: 'start', ours: PETSTORE, metric: 'startMs', atMost: 700 },
  { scene: 'start', ours: PETSTORE, metric: 'idleMb', atMost: 95 },
  ...[2, 4].map((count) => ({
    scene: 'replicas',
    ours: toReplicasName(count),
    peer: toReplicasName(1),
    metric: 'serverMicros',
    atMost: 1.1,
  })),
]

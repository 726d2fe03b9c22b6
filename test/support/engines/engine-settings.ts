export interface ImageNames {
  /** Undefined where the environment names none. */
  readonly configured: string | undefined
  readonly official: string
}

/** What the environment of a test run says about its engines. */
export interface EngineSettings {
  readonly mongodbUrl: string | undefined
  readonly redisUrl: string | undefined
  readonly mongodbImage: ImageNames
  readonly redisImage: ImageNames
  /** Nothing is installed, pulled, made or configured: what is there is used. */
  readonly foundOnly: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

export function engineSettings(env: Environment = process.env): EngineSettings {
  const engines = given(env, 'ENGINES')
  if (engines !== undefined && engines !== 'found-only') throw new Error(`ENGINES=${engines} means nothing: the only value is found-only`)
  return {
    mongodbUrl: given(env, 'MONGODB_URL'),
    redisUrl: given(env, 'REDIS_URL'),
    mongodbImage: { configured: given(env, 'MONGODB_IMAGE'), official: 'mongo:8' },
    redisImage: { configured: given(env, 'REDIS_IMAGE'), official: 'redis:7' },
    foundOnly: engines === 'found-only',
  }
}

function given(env: Environment, name: string): string | undefined {
  return env[name] === '' ? undefined : env[name]
}

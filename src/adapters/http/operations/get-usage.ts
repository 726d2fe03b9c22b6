import type { RequestState } from '../pipeline/context.js'
import { makeSerializer } from '../schemas/serializer.js'
import { usage as responseBody } from '../schemas/usage-schemas.js'
import { NO_PARAMETERS, parseQuery } from '../schemas/validation.js'
import type { OperationDeclaration } from './operation.js'

const EXAMPLE = {
  plan: 'free',
  minute: { limit: 60, used: 12, remaining: 48, resetsAt: '2026-11-22T12:01:22.000Z' },
  day: { limit: 1000, used: 340, remaining: 660, resetsAt: '2026-11-23T00:00:00.000Z' },
  ban: null,
}

export const getUsageOperation: OperationDeclaration<object> = {
  operationId: 'getUsage',
  method: 'get',
  path: '/usage',
  stability: 'beta',
  isUncharged: true,
  errors: ['InvalidParameter'],
  document: {
    tags: ['account'],
    summary: 'Get your usage',
    description:
      'Returns the plan of your API key, its usage in both windows and its ban. Requests do not count toward any limit, and succeed while ' +
      'the key is exhausted or banned. The response may be up to one second old. Beta: this operation may still change.',
    responses: {
      200: { description: 'The usage of the key.', content: { 'application/json': { schema: responseBody, example: EXAMPLE } } },
    },
  },
  makeHandler() {
    const serialize = makeSerializer<object>(responseBody)
    return async (ctx) => {
      parseQuery(NO_PARAMETERS, ctx.querystring)
      const { usage }: RequestState = ctx.state
      if (!usage) throw new Error('The operation was called without the usage of the key')
      return { status: 200, json: serialize(usage) }
    }
  },
}

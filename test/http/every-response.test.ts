import { startApi } from '../support/api.js'
import { describeEveryResponse } from '../support/every-response.js'
import { plansWithHighFailureLimit } from '../support/sweep.js'

describeEveryResponse('of a process with memory stores', async (_context, pets) =>
  startApi({ config: { plans: plansWithHighFailureLimit() }, doubles: { pets } }),
)

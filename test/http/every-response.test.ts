import { startApi } from '../support/api.js'
import { describeEveryResponse } from '../support/every-response.js'
import { patientPlans } from '../support/sweep.js'

describeEveryResponse('of a process with memory stores', async (_context, pets) =>
  startApi({ config: { plans: patientPlans() }, doubles: { pets } }),
)

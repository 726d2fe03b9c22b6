import { injectable } from 'inversify'
import type { Clock } from '../../core/ports/clock.js'

@injectable()
export class SystemClock implements Clock {
  nowMs(): number {
    return Date.now()
  }
}

import type { Plan } from './plan.ts'
import { durationInWords, shareInWords } from './units.ts'

/** What {@link limitsOf} judges by. */
export interface GeneratorFacts {
  readonly cpu: number
  readonly utilization: number
  readonly loopDelay: { readonly p99: number }
  readonly lateness: { readonly p99: number | null } | null
}

/** A thread that was busy for more of the time may have been what the server waited for. */
const busyShare = 0.9
/** Requests begun later than this, ms, were held up by the generator. */
const mostLate = 5
/** An event loop whose timers are later than this, ms, sees answers late as well. */
const mostDelay = 25

/** Why a generator's figures are not to be trusted. `http1Answers`: those that came over HTTP/1.1. */
export function limitsOf(plan: Plan, { cpu, utilization, loopDelay, lateness }: GeneratorFacts, http1Answers = 0): string[] {
  const limits: string[] = []
  // An open loop that spins is always busy; what tells there is how late it is.
  const spins = plan.rate > 0 && plan.pacing === 'spin'
  if (!spins && utilization > busyShare) {
    limits.push(`its ${plan.threads === 1 ? 'thread' : 'busiest thread'} was busy ${shareInWords(utilization)} of the time`)
  }
  if (lateness !== null && lateness.p99 !== null && lateness.p99 > mostLate) {
    limits.push(`it noticed that requests were due up to ${durationInWords(lateness.p99)} late (p99)`)
  }
  if (loopDelay.p99 > mostDelay) limits.push(`its event loop was up to ${durationInWords(loopDelay.p99)} late (p99)`)
  // One that spins wants its cores, too.
  if (limits.length > 0 && utilization > busyShare && cpu < utilization * 0.8 * plan.threads) {
    limits.push(
      `it got only ${cpu.toFixed(2)} of the ${plan.threads === 1 ? 'core' : `${plan.threads} cores`} it would have used: others were using the machine`,
    )
  }
  if (http1Answers > 0 && plan.streams > 1 && plan.kind !== 'websocket') {
    limits.push(`the server chose HTTP/1.1, which has one request at a time on a connection: of ${plan.streams} the others waited here`)
  }
  return limits
}

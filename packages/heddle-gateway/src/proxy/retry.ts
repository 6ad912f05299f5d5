import { isIdempotent, type HeddleError } from 'heddle/http'
import type { Endpoint } from '../upstream/index.ts'
import type { Attempt } from './attempt.ts'
import type { Plan } from './plan.ts'

/**
 * Where a request that failed with `error` is sent once more; undefined if that might do harm, or was done often
 * enough. `attempts`: so far. `tried`: where it failed before, to which this one is added.
 */
export function endpointForRetry(
  { route, head, cluster }: Plan,
  attempt: Attempt,
  error: HeddleError,
  attempts: number,
  tried: Endpoint[],
): Endpoint | undefined {
  if (attempts > route.config.retry.attempts) return undefined
  const stale = attempt.wasStale(error)
  // RFC 9110 §9.2.2: what may have been acted on is sent again only if that changes nothing.
  if (!error.unprocessed && !(stale && isIdempotent(head.method))) return undefined
  tried.push(attempt.endpoint)
  // An endpoint that closed an old connection may be well. What it refused the pool has offered to it several times.
  return cluster.pick(tried) ?? (stale ? attempt.endpoint : undefined)
}

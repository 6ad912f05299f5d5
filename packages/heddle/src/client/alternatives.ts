import { combinedFieldValue, fieldValue, type Fields, type Instant } from '../http/index.ts'
import { readAltSvc, type OfferedService } from './alt-svc.ts'
import type { PooledConnection } from './connection.ts'
import type { PooledOrigin } from './origin.ts'

/** ms for which a service that could not be reached is not tried again, doubled each time in a row … */
const firstPause = 5 * 60_000
/** … up to this. */
const longestPause = 48 * 60 * 60_000
/** Origins of which it is remembered; the one that was heard of first goes first. */
const mostOrigins = 1_000

/** Where an origin is served over HTTP/3 as well, and whether it can be reached there. */
export class Alternative {
  readonly host: string
  readonly port: number
  /** The value of the field that said so last, and for how long from then on, ms. */
  said: string
  maxAge: number
  /** Until when what the server said is good. */
  #expiresAt: Instant
  #brokenUntil: Instant
  /** How often it could not be reached, since the last time that it could. */
  #failures: number

  constructor(host: string, port: number) {
    this.host = host
    this.port = port
    this.said = ''
    this.maxAge = 0
    this.#expiresAt = -Infinity
    this.#brokenUntil = -Infinity
    this.#failures = 0
  }

  /** True: the server says so, and it was not found to be out of reach. */
  isUsable(now: Instant): boolean {
    return now < this.#expiresAt && now >= this.#brokenUntil
  }

  offer(until: Instant): void {
    this.#expiresAt = until
  }

  /** The server takes back what it said. What is known of the way there stays known. */
  withdraw(): void {
    this.#expiresAt = -Infinity
    this.said = ''
  }

  /** Out of reach, while the origin itself could be reached; what failed at once counts once. */
  failed(now: Instant): void {
    if (now < this.#brokenUntil) return
    this.#brokenUntil = now + Math.min(firstPause * 2 ** this.#failures, longestPause)
    this.#failures++
  }

  worked(): void {
    this.#failures = 0
    this.#brokenUntil = -Infinity
  }
}

/** What the servers of a client have said of HTTP/3 (Alt-Svc, RFC 7838); it outlives the origins of the directory. */
export class Alternatives {
  readonly #byOrigin: Map<string, Alternative>
  /** Certificates are not verified: then no other host is believed in (RFC 7838 §2.1). */
  readonly #isBlind: boolean

  constructor(isBlind: boolean) {
    this.#byOrigin = new Map()
    this.#isBlind = isBlind
  }

  /** What was said of the origin with this key. */
  find(key: string): Alternative | undefined {
    return this.#byOrigin.get(key)
  }

  /** `fields` of a final response to a request for `origin` came by `connection`. */
  learn(origin: PooledOrigin, fields: Fields, connection: PooledConnection, now: Instant): void {
    const value = combinedFieldValue(fields, 'alt-svc')
    if (value === undefined || origin.route.quic === undefined || origin.tunnelsOnly) return
    const authorized = connection.info.tls?.authorized === true
    if (!authorized && !this.#isBlind) return
    const known = origin.alternative
    // Servers say it with every response.
    if (known?.said === value) return known.offer(now + known.maxAge - ageOf(fields))
    const offered = readAltSvc(value)
    if (offered === undefined) return
    const service = offered.find(({ host }) => authorized || host === undefined || host === origin.host)
    if (service === undefined) return known?.withdraw()
    const alternative = this.#alternativeOf(origin, service)
    alternative.said = value
    alternative.maxAge = service.maxAge
    // RFC 7838 §3.1: counted from when the response was made.
    alternative.offer(now + service.maxAge - ageOf(fields))
  }

  /** RFC 7838 §3: what is said last replaces all that was said before. */
  #alternativeOf(origin: PooledOrigin, { host = origin.host, port }: OfferedService): Alternative {
    const known = origin.alternative
    if (known?.host === host && known.port === port) return known
    const alternative = new Alternative(host, port)
    origin.alternative = alternative
    this.#byOrigin.delete(origin.key)
    this.#byOrigin.set(origin.key, alternative)
    if (this.#byOrigin.size > mostOrigins) {
      const [oldest] = this.#byOrigin.keys()
      if (oldest !== undefined) this.#byOrigin.delete(oldest)
    }
    return alternative
  }
}

/** RFC 9111 §5.1, ms. */
function ageOf(fields: Fields): number {
  const age = fieldValue(fields, 'age')
  return age !== undefined && /^\d+$/.test(age) ? Number(age) * 1000 : 0
}

import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { literalAddress, lookupResult, type IpAddress } from './addresses.ts'

/**
 * The addresses of `host`, in the order of the resolver (RFC 6724), those of `family` if that is 4 or 6. `done` is called
 * once, perhaps before this returns; a host without addresses is an error.
 */
export function resolveHost(
  host: string,
  lookup: LookupFunction | undefined,
  family: 0 | 4 | 6,
  done: (error: Error | undefined, addresses: readonly IpAddress[]) => void,
): void {
  const literal = literalAddress(host)
  if (literal !== undefined) return done(undefined, [literal])
  const look = lookup ?? (systemLookup as unknown as LookupFunction)
  let answered = false
  const answer = (error: Error | null | undefined, result: string | LookupAddress[] | undefined): void => {
    if (answered) return
    answered = true
    if (error !== null && error !== undefined) return done(error, [])
    const addresses = lookupResult(result).filter((address) => family === 0 || address.family === family)
    done(addresses.length === 0 ? new Error('it has no address') : undefined, addresses)
  }
  try {
    look(host, { all: true, family, order: 'verbatim' }, answer)
  } catch (error) {
    answer(error as Error, undefined)
  }
}

import type { Fields } from 'heddle/http'
import type { ListenerConfig } from '../config/types.ts'
import { forwardedValue, type Peer } from './peer.ts'

/** A request that came through this gateway so often goes in a circle. */
export const maxPasses = 10

/**
 * What stands in a request sent upstream: the client's fields (the engine has taken those of the
 * client's connection out already, so what is added here cannot be named by its `Connection`), our
 * `Via`, and who the client is. Undefined if the request goes in a circle.
 *
 * A peer that is not trusted cannot say who was before it: its `Forwarded`, `X-Forwarded-*` and
 * `X-Real-IP` are taken out, whatever the listener writes itself.
 */
export function requestFields(fields: Fields, authority: string, peer: Peer, listener: ListenerConfig, via: string): Fields | undefined {
  const { trusted } = peer
  const { forwarded } = listener
  const writesPlain = forwarded === 'x-forwarded' || forwarded === 'both'
  const writesStandard = forwarded === 'forwarded' || forwarded === 'both'
  const sent: string[] = []
  let clients = ''
  let elements = ''
  let host = ''
  let proto = ''
  let passes = 0
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    const value = fields[i + 1] as string
    if (isForwarding(name)) {
      // No proxy spells them with `_`: they are a client's, whoever passed them on.
      if (!trusted || name.includes('_')) continue
      // One line each, for upstreams that read the first or the last only.
      if (writesPlain && name === 'x-forwarded-for') clients = join(clients, value)
      else if (writesPlain && name === 'x-forwarded-host') host = join(host, value)
      else if (writesPlain && name === 'x-forwarded-proto') proto = join(proto, value)
      else if (writesStandard && name === 'forwarded') elements = join(elements, value)
      else sent.push(name, value)
      continue
    }
    // RFC 9113 §3.1: it belongs to an upgrade to h2c, which is obsolete and never passed on.
    if (name === 'http2-settings') continue
    if (name === 'via') passes += timesNamed(value, listener.via)
    sent.push(name, value)
  }
  if (passes >= maxPasses) return undefined
  // RFC 9110 §7.6.3: a gateway adds itself to every request it forwards.
  sent.push('via', via)
  if (writesPlain) {
    sent.push('x-forwarded-for', join(clients, peer.address))
    if (host !== '' || authority !== '') sent.push('x-forwarded-host', host === '' ? authority : host)
    sent.push('x-forwarded-proto', proto === '' ? peer.scheme : proto)
  }
  if (writesStandard) {
    // RFC 7239 §4: one element per proxy, in the order they were passed.
    const hostPair = authority === '' ? '' : `;host=${forwardedValue(authority)}`
    sent.push('forwarded', join(elements, `for=${peer.node}${hostPair};proto=${peer.scheme}`))
  }
  return sent
}

function join(list: string, value: string): string {
  return list === '' ? value : `${list}, ${value}`
}

/**
 * What stands in the trailers sent upstream. Who the client is, no proxy says there; upstreams that
 * merge trailers into the head (RFC 9110 §6.5.1) would believe whoever wrote it.
 */
export function requestTrailers(fields: Fields): Fields {
  let clean = true
  for (let i = 0; i < fields.length; i += 2) if (isForwarding(fields[i] as string)) clean = false
  if (clean) return fields
  const sent: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    if (!isForwarding(fields[i] as string)) sent.push(fields[i] as string, fields[i + 1] as string)
  }
  return sent
}

/**
 * True for the fields by which proxies tell who the client is, and for what upstreams that map `-`
 * and `_` to the same variable (CGI, WSGI) would take for one of them.
 */
export function isForwarding(name: string): boolean {
  const first = name.charCodeAt(0)
  if (first === 0x66) return name === 'forwarded'
  if (first !== 0x78) return false
  if (name.startsWith('x-forwarded-') || name === 'x-real-ip') return true
  if (!name.includes('_')) return false
  const plain = name.replaceAll('_', '-')
  return plain.startsWith('x-forwarded-') || plain === 'x-real-ip'
}

/** How often `pseudonym` stands in one value of Via: `received-protocol RWS received-by [ RWS comment ]`, separated by commas. */
function timesNamed(value: string, pseudonym: string): number {
  let count = 0
  for (const entry of value.split(',')) if (entry.trim().split(/[ \t]+/, 2)[1] === pseudonym) count++
  return count
}

/** The `max-forwards` of a request, or -1 where there is none that can be read. */
export function maxForwards(fields: Fields): number {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] === 'max-forwards') return /^\d{1,9}$/.test(fields[i + 1] as string) ? Number(fields[i + 1]) : -1
  }
  return -1
}

/** `fields` with `max-forwards` one lower (RFC 9110 §7.6.2); `before` is what it is. */
export function decrementMaxForwards(fields: Fields, before: number): Fields {
  const sent: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    sent.push(name, name === 'max-forwards' ? String(before - 1) : (fields[i + 1] as string))
  }
  return sent
}

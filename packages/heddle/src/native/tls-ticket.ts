import { createHash } from 'node:crypto'
import type { OpenSsl } from './openssl.ts'

/** RFC 9001 §4.6.1: the `max_early_data_size` of every ticket that allows early data. */
export const anyEarlyData = 0xffff_ffff

/** Of this form, version 1. */
const version = 1
const prefixLength = 33

/**
 * What a ticket is bound to. A resumed session is not verified again, so it is resumed only towards the host it was
 * made with, and where the same authorities are trusted as strictly.
 */
export function ticketBinding(host: string, trust: string, rejectUnauthorized: boolean): Uint8Array {
  return createHash('sha256').update(`${host}\0${trust}\0${rejectUnauthorized}`).digest()
}

/** A session with its ticket as octets, bound by {@link ticketBinding}. */
export function encodeTicket({ f, ffi, out }: OpenSsl, session: bigint, binding: Uint8Array): Uint8Array | undefined {
  const length = f.i2d_SSL_SESSION(session, null)
  if (length <= 0) return undefined
  const ticket = new Uint8Array(new ArrayBuffer(prefixLength + length))
  ticket[0] = version
  ticket.set(binding, 1)
  out[0] = ffi.getRawPointer(ticket) + BigInt(prefixLength)
  return f.i2d_SSL_SESSION(session, out) === length ? ticket : undefined
}

/** The session in a ticket, which the caller frees; 0 for a ticket that is none, or bound to something else. */
export function decodeTicket(openssl: OpenSsl, ticket: Uint8Array, binding: Uint8Array): bigint {
  const { f, ffi, out } = openssl
  if (ticket.length <= prefixLength || ticket[0] !== version) return 0n
  if (Buffer.compare(ticket.subarray(1, prefixLength), binding) !== 0) return 0n
  const der = new Uint8Array(new ArrayBuffer(ticket.length - prefixLength))
  der.set(ticket.subarray(prefixLength))
  f.ERR_clear_error()
  out[0] = ffi.getRawPointer(der)
  const session = f.d2i_SSL_SESSION(null, out, openssl.long(der.length))
  f.ERR_clear_error()
  return session
}

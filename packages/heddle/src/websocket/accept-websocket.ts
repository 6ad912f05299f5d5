import { responseHead, type Exchange, type Head } from '../http/index.ts'
import type { Clock } from '../io/index.ts'
import { fieldsFrom, type HeadersInit } from '../web/index.ts'
import { agree, type Refusal } from './agreement.ts'
import { aClock, checkOptions, headers, type OptionChecks } from './option-checks.ts'
import { Socket } from './socket.ts'
import { upgradeChecks, type UpgradeOptions } from './upgrade-options.ts'

/** What `acceptWebSocket` can be told beside what `upgrade` can. */
export interface AcceptOptions extends UpgradeOptions {
  /** Fields to send with the answer. Default: those of the handshake alone. */
  readonly headers?: HeadersInit | undefined
  /** The server's clock. Default: the system's. */
  readonly clock?: Clock | undefined
}

const checks: OptionChecks<AcceptOptions> = { ...upgradeChecks, headers, clock: aClock }

/**
 * Accepts a WebSocket on the raw face: to be called with the exchange and the head that `onHead` was given. The
 * socket becomes the exchange's handler, and whatever comes waits in it until it is read or has a handler.
 * Undefined: the request asks for none, or its handshake is bad; it has been answered (400, 403, 405, 426).
 * Throws UsageError for options that are wrong.
 *
 * ```ts
 * onHead(head: Head): void {
 *   const socket = acceptWebSocket(this.exchange, head)
 *   if (socket !== undefined) socket.handler = echo
 * }
 * ```
 */
export function acceptWebSocket(exchange: Exchange, head: Head, options: AcceptOptions = {}): Socket | undefined {
  checkOptions('acceptWebSocket', '', options, checks)
  const { headers: added, clock } = options
  const agreed = agree('acceptWebSocket', head, options, clock)
  if ('status' in agreed) {
    refuse(exchange, agreed)
    return undefined
  }
  const socket = new Socket(exchange, agreed.options)
  exchange.sendHead(responseHead(200, added === undefined ? agreed.fields : [...fieldsFrom(added), ...agreed.fields]), false)
  socket.open()
  return socket
}

function refuse(exchange: Exchange, { status, reason, fields }: Refusal): void {
  const content = Buffer.from(`${reason}\n`)
  const length = ['content-type', 'text/plain;charset=UTF-8', 'content-length', `${content.length}`]
  exchange.sendHead(responseHead(status, [...fields, ...length]), false)
  exchange.sendOwned(content, true)
  exchange.discard()
}

import type { Instant } from '../http/index.ts'
import type { PingCallback } from './socket.ts'

interface PendingPing {
  readonly payload: Uint8Array
  readonly sentAt: Instant
  readonly callback: PingCallback
}

/** The Pings of one connection whose Pong somebody waits for. */
export class Pings {
  #pending: PendingPing[]
  #count: number

  constructor() {
    this.#pending = []
    this.#count = 0
  }

  /** A payload that no other Ping of the connection has. */
  payload(): Uint8Array {
    const payload = new Uint8Array(4)
    new DataView(payload.buffer).setUint32(0, ++this.#count)
    return payload
  }

  add(payload: Uint8Array, sentAt: Instant, callback: PingCallback): void {
    this.#pending.push({ payload, sentAt, callback })
  }

  /** RFC 6455 §5.5.3: a Pong has the payload of its Ping, and answers those before it that had no answer. */
  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    const answered = this.#pending.findIndex(({ payload }) => isEqual(payload, buffer, start, limit))
    if (answered === -1) return
    for (const { callback, sentAt } of this.#pending.splice(0, answered + 1)) callback(now - sentAt)
  }

  /** There will be no more Pongs. */
  end(): void {
    const pending = this.#pending
    this.#pending = []
    for (const { callback } of pending) callback(undefined)
  }
}

function isEqual(payload: Uint8Array, buffer: Uint8Array, start: number, limit: number): boolean {
  if (payload.length !== limit - start) return false
  for (let i = 0; i < payload.length; i++) if (payload[i] !== buffer[start + i]) return false
  return true
}

import { createHash } from 'node:crypto'
import type { HeddleError, Instant, OutboxLike, StreamEngine } from '../http/index.ts'

/** An engine without a protocol: sends what it is told to, remembers what it is called with. */
export class TestEngine implements StreamEngine {
  wantsInput = true
  closing: 'no' | 'end' | 'close' | 'reset' = 'no'
  deadline: Instant = Infinity
  onDirty: () => void = () => {}
  /** Everything but `transmit`, in order: `receive 3`, `end`, `error CODE`, `expire`. */
  readonly calls: string[] = []
  readonly received: Buffer[] = []
  transmits = 0
  error: HeddleError | undefined
  readonly queue: Buffer[] = []
  /** What to do with input; runs inside `receive`. */
  onReceive: (bytes: Buffer) => void = () => {}
  onEnd: () => void = () => {}
  onExpire: (now: Instant) => void = () => {
    this.deadline = Infinity
  }
  onTransmit: () => void = () => {}

  /** Queues bytes; from outside of the engine's run it is followed by `onDirty`. */
  send(bytes: Uint8Array | string): void {
    this.queue.push(Buffer.from(bytes as string))
    this.onDirty()
  }

  receive(buffer: Uint8Array, start: number, limit: number, _now: Instant): void {
    const bytes = Buffer.from(buffer.subarray(start, limit))
    this.calls.push(`receive ${bytes.length}`)
    this.received.push(bytes)
    this.onReceive(bytes)
  }

  receiveEnd(_now: Instant): void {
    this.calls.push('end')
    this.onEnd()
  }

  receiveError(error: HeddleError, _now: Instant): void {
    this.calls.push(`error ${error.code}`)
    this.error = error
  }

  transmit(out: OutboxLike, _now: Instant): boolean {
    this.transmits++
    this.onTransmit()
    for (let bytes = this.queue[0]; bytes !== undefined; bytes = this.queue[0]) {
      const count = Math.min(bytes.length, out.room)
      out.writeBytes(bytes, 0, count)
      if (count < bytes.length) {
        this.queue[0] = bytes.subarray(count)
        return true
      }
      this.queue.shift()
    }
    return false
  }

  expire(now: Instant): void {
    this.calls.push('expire')
    this.onExpire(now)
  }

  get text(): string {
    return Buffer.concat(this.received).toString('latin1')
  }

  get hash(): string {
    return hashOf(...this.received)
  }
}

export function hashOf(...parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

import type { EventEmitter } from 'node:events'
import type { NodeWebSocket } from './node-web-socket.ts'

/** Called with an event, or an object that has such a method. */
export type EmitterListener = ((event: EmitterEvent) => void) | { handleEvent(event: EmitterEvent): void }

/** How a listener is added. */
export interface ListenerOptions {
  /** Called once. Default false. */
  readonly once?: boolean
}

/** What listeners that are added by `addEventListener` get: the event's type and target, and what that event has besides. */
export interface EmitterEvent {
  readonly type: string
  readonly target: NodeWebSocket
  /** 'message': text is a string. */
  readonly data?: unknown
  /** 'close'. */
  readonly code?: number
  readonly reason?: string
  readonly wasClean?: boolean
  /** 'error'. */
  readonly error?: unknown
  readonly message?: string
}

type Emitted = Parameters<EventEmitter['on']>[1]

/** What was added, and the listener of the emitter that stands for it. */
interface Added {
  readonly type: string
  readonly listener: EmitterListener
  readonly isAttribute: boolean
  readonly emitted: Emitted
}

/** `addEventListener` and `onmessage` on top of an emitter, as the package ws has them. */
export class EmitterEvents {
  readonly #target: NodeWebSocket
  #added: Added[]

  constructor(target: NodeWebSocket) {
    this.#target = target
    this.#added = []
  }

  add(type: string, listener: EmitterListener, { once = false }: ListenerOptions, isAttribute = false): void {
    // As with EventTarget, a listener is there once; and there are no other events.
    if (!(type in eventOf) || (!isAttribute && this.#find(type, listener) !== undefined)) return
    const make = eventOf[type as keyof typeof eventOf]
    const emitted: Emitted = (first, second) => {
      if (once) this.remove(type, listener)
      const event = make(this.#target, first as never, second as never)
      if (typeof listener === 'function') listener.call(this.#target, event)
      else listener.handleEvent(event)
    }
    this.#added.push({ type, listener, isAttribute, emitted })
    ;(this.#target as EventEmitter).on(type, emitted)
  }

  remove(type: string, listener: EmitterListener): void {
    this.#drop(this.#find(type, listener))
  }

  attribute(type: string): EmitterListener | null {
    return this.#added.find((one) => one.type === type && one.isAttribute)?.listener ?? null
  }

  setAttribute(type: string, listener: EmitterListener | null): void {
    this.#drop(this.#added.find((one) => one.type === type && one.isAttribute))
    if (typeof listener === 'function') this.add(type, listener, {}, true)
  }

  #find(type: string, listener: EmitterListener): Added | undefined {
    return this.#added.find((one) => one.type === type && one.listener === listener && !one.isAttribute)
  }

  #drop(added: Added | undefined): void {
    if (added === undefined) return
    this.#added = this.#added.filter((one) => one !== added)
    ;(this.#target as EventEmitter).removeListener(added.type, added.emitted)
  }
}

/** The event for what an emitter tells. */
const eventOf = {
  open: (target: NodeWebSocket): EmitterEvent => ({ type: 'open', target }),
  message: (target: NodeWebSocket, data: unknown, isBinary: boolean): EmitterEvent => ({
    type: 'message',
    target,
    data: isBinary ? data : String(data),
  }),
  close: (target: NodeWebSocket, code: number, reason: Buffer): EmitterEvent => ({
    type: 'close',
    target,
    code,
    reason: reason.toString(),
    wasClean: code !== 1006,
  }),
  error: (target: NodeWebSocket, error: unknown): EmitterEvent => ({ type: 'error', target, error, message: (error as Error).message }),
}

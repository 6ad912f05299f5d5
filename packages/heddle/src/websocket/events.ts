import { inspect } from 'node:util'
import type { HeddleError } from '../http/index.ts'

/** What an EventTarget takes as a listener. It has names only where there are types of the DOM, or the newest of Node's. */
export type TargetListener = NonNullable<Parameters<EventTarget['addEventListener']>[1]>

/** What a message event carries: text is a string, bytes are what `binaryType` says. */
export type MessageData = string | Blob | ArrayBuffer | Uint8Array<ArrayBuffer>

/** The events of a WebSocket, by type. */
export interface WebSocketEventMap {
  readonly open: Event
  /** `data` is a {@link MessageData}. */
  readonly message: MessageEvent
  readonly error: WebSocketErrorEvent
  readonly close: WebSocketCloseEvent
}

/**
 * A message that arrived. A MessageEvent to all who look at it; Node's own costs 450 ns to make, since it
 * reads its options by the rules of Web IDL, and this one 70.
 */
class DispatchedMessage extends Event {
  readonly #data: MessageData
  readonly #origin: string

  constructor(data: MessageData, origin: string) {
    super('message')
    this.#data = data
    this.#origin = origin
  }

  get data(): MessageData {
    return this.#data
  }
  get origin(): string {
    return this.#origin
  }
  get lastEventId(): string {
    return ''
  }
  get source(): null {
    return null
  }
  get ports(): readonly MessagePort[] {
    return []
  }
  get [Symbol.toStringTag](): string {
    return 'MessageEvent'
  }
}

/**
 * The same for an `onmessage` that is alone, which is called without a dispatch: an event only as far as it
 * can be told (the constructor of Event and a dispatch cost 90 ns, this costs 5).
 */
class DirectMessage {
  readonly #data: MessageData
  readonly #origin: string
  readonly #target: EventTarget
  #over: boolean
  #timeStamp: number | undefined

  constructor(data: MessageData, origin: string, target: EventTarget) {
    this.#data = data
    this.#origin = origin
    this.#target = target
    this.#over = false
    this.#timeStamp = undefined
  }

  /** The handler has returned. */
  static end(event: DirectMessage): void {
    event.#over = true
  }

  get data(): MessageData {
    return this.#data
  }
  get origin(): string {
    return this.#origin
  }
  get lastEventId(): string {
    return ''
  }
  get source(): null {
    return null
  }
  get ports(): readonly MessagePort[] {
    return []
  }
  get type(): string {
    return 'message'
  }
  get target(): EventTarget {
    return this.#target
  }
  get srcElement(): EventTarget {
    return this.#target
  }
  get currentTarget(): EventTarget | null {
    return this.#over ? null : this.#target
  }
  get eventPhase(): number {
    return this.#over ? 0 : 2
  }
  /** Of the first time that somebody asks. */
  get timeStamp(): number {
    this.#timeStamp ??= performance.now()
    return this.#timeStamp
  }
  get bubbles(): boolean {
    return false
  }
  get cancelable(): boolean {
    return false
  }
  get composed(): boolean {
    return false
  }
  get defaultPrevented(): boolean {
    return false
  }
  get returnValue(): boolean {
    return true
  }
  get cancelBubble(): boolean {
    return false
  }
  get isTrusted(): boolean {
    return false
  }
  composedPath(): EventTarget[] {
    return this.#over ? [] : [this.#target]
  }
  // There is nobody else to keep it from, and nothing to prevent.
  stopPropagation(): void {}
  stopImmediatePropagation(): void {}
  preventDefault(): void {}
  initEvent(): void {}
  initMessageEvent(): void {}
  get [Symbol.toStringTag](): string {
    return 'MessageEvent'
  }
  [inspect.custom](): object {
    return { type: this.type, data: this.#data, origin: this.#origin }
  }
}

/** How a WebSocket ended. */
export class WebSocketCloseEvent extends Event {
  /** The code of the peer's Close: 1005 if it had none, 1006 if none came. */
  readonly code: number
  readonly reason: string
  /** Both sides sent their Close, and nothing that was accepted was lost. */
  readonly wasClean: boolean

  constructor(code: number, reason: string, wasClean: boolean) {
    super('close')
    this.code = code
    this.reason = reason
    this.wasClean = wasClean
  }
}

/** Why a WebSocket failed. */
export class WebSocketErrorEvent extends Event {
  /** What happened, where, and what was expected. */
  readonly message: string
  /** A HeddleError, or the reason of the signal that was aborted. */
  readonly error: unknown

  constructor(message: string, error: unknown) {
    super('error')
    this.message = message
    this.error = error
  }
}

/** `value instanceof MessageEvent` and the like are true, where there is such a class. */
function passFor(own: { readonly prototype: object }, name: 'MessageEvent' | 'CloseEvent' | 'ErrorEvent'): void {
  const native = (globalThis as Record<string, unknown>)[name] as { readonly prototype: object } | undefined
  if (native !== undefined) Object.setPrototypeOf(own.prototype, native.prototype)
}
passFor(DispatchedMessage, 'MessageEvent')
passFor(DirectMessage, 'MessageEvent')
passFor(WebSocketCloseEvent, 'CloseEvent')
passFor(WebSocketErrorEvent, 'ErrorEvent')

/** Dispatches a message to all listeners of `target`. */
export function dispatchMessage(target: EventTarget, data: MessageData, origin: string): void {
  target.dispatchEvent(new DispatchedMessage(data, origin))
}

/** Told what a listener threw, or its promise was rejected with. */
export type Report = (error: unknown) => void

/** Calls `handler`, the only one there is, with a message. Default of `report`: as it is with what any listener throws. */
export function callWithMessage(
  handler: (event: never) => unknown,
  target: EventTarget,
  data: MessageData,
  origin: string,
  report: Report = reportLater,
): void {
  const event = new DirectMessage(data, origin, target)
  try {
    watchResult(handler.call(target, event as never), report)
  } catch (error) {
    report(error)
  }
  DirectMessage.end(event)
}

/** As Node does it with what listeners return. */
function watchResult(returned: unknown, report: Report): void {
  const result = returned as { then?: unknown } | null | undefined
  if (typeof result === 'object' && result !== null && typeof result.then === 'function') {
    Promise.resolve(result as PromiseLike<unknown>).then(undefined, report)
  }
}

/** A listener whose failures are told to `report`, and not to the process. */
export class GuardedListener {
  readonly #listener: TargetListener
  readonly #report: Report

  constructor(listener: TargetListener, report: Report) {
    this.#listener = listener
    this.#report = report
  }

  handleEvent(event: Event): void {
    const listener = this.#listener
    // Nothing bubbles here; and Node's `currentTarget` is null for all listeners but the first.
    try {
      watchResult(typeof listener === 'function' ? listener.call(event.target as never, event) : listener.handleEvent(event), this.#report)
    } catch (error) {
      this.#report(error)
    }
  }
}

/** Node's EventTarget makes an uncaught exception of what a listener throws, after the dispatch. */
function reportLater(error: unknown): void {
  process.nextTick(() => {
    throw error
  })
}

/** The message of an error event. */
export function describe(url: string, error: unknown): string {
  const { message } = (error ?? {}) as Partial<HeddleError>
  const text = typeof message === 'string' ? message : String(error)
  return url === '' || text.includes(url) ? text : `${url}: ${text}`
}

import {
  callWithMessage,
  dispatchMessage,
  GuardedListener,
  type MessageData,
  type Report,
  type TargetListener,
  type WebSocketEventMap,
} from './events.ts'
import { HandlerAttributes, type Handler } from './handler-attributes.ts'
import type { WebSocket } from './web-socket.ts'

type EventType = keyof WebSocketEventMap
type AddOptions = Parameters<EventTarget['addEventListener']>[2]
type RemoveOptions = Parameters<EventTarget['removeEventListener']>[2]

/** Somebody listens to `target`: messages can be delivered to it. */
export let isListenedTo: (target: MessageTarget) => boolean
/** Tells the listeners of `target` of a message. */
export let deliver: (target: MessageTarget, data: MessageData, origin: string) => void

/**
 * The part of a WebSocket that is listened to. A message costs its listeners a dispatch; an `onmessage` that is
 * the only listener there ever was is called without one.
 */
export class MessageTarget extends EventTarget {
  /** Called when the first listener for messages comes. */
  readonly #onListened: (target: MessageTarget) => void
  /** An `onmessage` that is alone. */
  #direct: Handler | undefined
  /** A listener for messages was added: each one is dispatched. */
  #dispatches: boolean
  #attributes: HandlerAttributes | undefined
  /** Told what listeners throw; undefined: that is an uncaught exception. */
  readonly #report: Report | undefined
  /** What stands for a listener that was added. */
  #guarded: WeakMap<object, GuardedListener> | undefined

  constructor(onListened: (target: MessageTarget) => void, report: Report | undefined) {
    super()
    this.#report = report
    this.#guarded = undefined
    this.#onListened = onListened
    this.#direct = undefined
    this.#dispatches = false
    this.#attributes = undefined
  }

  static {
    isListenedTo = (target) => target.#dispatches || target.#direct !== undefined
    deliver = (target, data, origin) => {
      if (target.#direct === undefined) dispatchMessage(target, data, origin)
      else callWithMessage(target.#direct, target, data, origin, target.#report)
    }
  }

  override addEventListener<Type extends EventType>(
    type: Type,
    listener:
      | ((this: WebSocket, event: WebSocketEventMap[Type]) => unknown)
      | { handleEvent(event: WebSocketEventMap[Type]): unknown }
      | null,
    options?: AddOptions,
  ): void
  override addEventListener(type: string, listener: TargetListener | null, options?: AddOptions): void
  override addEventListener(type: string, listener: unknown, options?: AddOptions): void {
    if (type === 'message') this.#startDispatching()
    super.addEventListener(type, this.#guard(listener) as TargetListener, options)
  }

  override removeEventListener(type: string, listener: TargetListener | null, options?: RemoveOptions): void {
    super.removeEventListener(type, this.#guard(listener) as TargetListener, options)
  }

  /** What is added for `listener`, and removed. */
  #guard(listener: unknown): unknown {
    if (this.#report === undefined || listener === null || (typeof listener !== 'function' && typeof listener !== 'object')) return listener
    this.#guarded ??= new WeakMap()
    let guarded = this.#guarded.get(listener)
    if (guarded === undefined) {
      guarded = new GuardedListener(listener as TargetListener, this.#report)
      this.#guarded.set(listener, guarded)
    }
    return guarded
  }

  override dispatchEvent(event: Event): boolean {
    if (event.type === 'message') this.#startDispatching()
    return super.dispatchEvent(event)
  }

  /** From now on an `onmessage` is one listener among others. */
  #startDispatching(): void {
    if (this.#dispatches) return
    this.#dispatches = true
    const direct = this.#direct
    this.#direct = undefined
    if (direct !== undefined) this.#write('message', direct)
    this.#onListened(this)
  }

  #read(type: EventType): never {
    return (this.#attributes?.read(type) ?? null) as never
  }

  #write(type: EventType, handler: unknown): void {
    this.#attributes ??= new HandlerAttributes((name, listener, add) =>
      add
        ? super.addEventListener(name, this.#guard(listener) as TargetListener)
        : super.removeEventListener(name, this.#guard(listener) as TargetListener),
    )
    this.#attributes.write(type, handler)
  }

  get onopen(): ((this: WebSocket, event: WebSocketEventMap['open']) => unknown) | null {
    return this.#read('open')
  }
  set onopen(handler: ((this: WebSocket, event: WebSocketEventMap['open']) => unknown) | null) {
    this.#write('open', handler)
  }
  get onerror(): ((this: WebSocket, event: WebSocketEventMap['error']) => unknown) | null {
    return this.#read('error')
  }
  set onerror(handler: ((this: WebSocket, event: WebSocketEventMap['error']) => unknown) | null) {
    this.#write('error', handler)
  }
  get onclose(): ((this: WebSocket, event: WebSocketEventMap['close']) => unknown) | null {
    return this.#read('close')
  }
  set onclose(handler: ((this: WebSocket, event: WebSocketEventMap['close']) => unknown) | null) {
    this.#write('close', handler)
  }
  /** The cheapest way to hear of messages, as long as there is no listener besides. */
  get onmessage(): ((this: WebSocket, event: WebSocketEventMap['message']) => unknown) | null {
    return this.#dispatches ? this.#read('message') : ((this.#direct ?? null) as never)
  }
  set onmessage(handler: ((this: WebSocket, event: WebSocketEventMap['message']) => unknown) | null) {
    if (this.#dispatches) {
      this.#write('message', handler)
      return
    }
    this.#direct = typeof handler === 'function' ? (handler as Handler) : undefined
    if (this.#direct !== undefined) this.#onListened(this)
  }
}

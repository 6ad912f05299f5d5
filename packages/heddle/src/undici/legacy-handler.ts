import type { DispatchController, DispatchHandler, LegacyDispatchHandler } from './types.ts'

/** `handler`, whichever words it speaks, in those of undici 7 and later. */
export function modernHandler(handler: DispatchHandler | LegacyDispatchHandler): DispatchHandler {
  if ('onRequestStart' in handler || !('onConnect' in handler)) return handler as DispatchHandler
  return new ModernHandler(handler)
}

/** Tells a handler of undici 6. */
class ModernHandler implements DispatchHandler {
  readonly #legacy: LegacyDispatchHandler

  constructor(legacy: LegacyDispatchHandler) {
    this.#legacy = legacy
  }

  onBodySent(chunk: Uint8Array): void {
    this.#legacy.onBodySent?.(chunk)
  }

  onRequestSent(): void {
    this.#legacy.onRequestSent?.()
  }

  onRequestStart(controller: DispatchController, context: unknown): void {
    this.#legacy.onConnect?.((reason) => controller.abort(reason), context)
  }

  onResponseStarted(): void {
    this.#legacy.onResponseStarted?.()
  }

  onResponseStart(controller: DispatchController, status: number, _headers: unknown, statusText = ''): void {
    const goesOn = this.#legacy.onHeaders?.(status, controller.rawHeaders ?? [], () => controller.resume(), statusText)
    if (goesOn === false) controller.pause()
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    if (this.#legacy.onData?.(chunk) === false) controller.pause()
  }

  onResponseEnd(controller: DispatchController): void {
    this.#legacy.onComplete?.(controller.rawTrailers ?? [])
  }

  onResponseError(_controller: DispatchController, error: Error): void {
    this.#legacy.onError?.(error)
  }
}

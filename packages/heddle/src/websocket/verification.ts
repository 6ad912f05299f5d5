import { fieldValue, type Head } from '../http/index.ts'
import { fieldsFrom } from '../web/index.ts'
import type { IncomingMessage } from '../node/index.ts'
import type { Refusal } from './agreement.ts'
import { wrongOption } from './option-checks.ts'
import type { VerifyClient, VerifyInfo } from './ws-options.ts'

/** `verifyClient` at work: it may decide at once, or later by the callback it takes. */
export class Verification {
  readonly #verify: VerifyClient
  readonly #info: VerifyInfo
  readonly #done: (refusal: Refusal | undefined) => void
  #decided: boolean

  constructor(verify: VerifyClient, request: IncomingMessage, head: Head, done: (refusal: Refusal | undefined) => void) {
    this.#verify = verify
    this.#info = { origin: fieldValue(head.fields, 'origin') ?? '', req: request, secure: head.scheme === 'https' }
    this.#done = done
    this.#decided = false
  }

  start(): void {
    if (this.#verify.length >= 2) this.#verify(this.#info, (...decision) => this.#decide(...decision))
    else {
      const verified: unknown = (this.#verify as (info: VerifyInfo) => unknown)(this.#info)
      // It would count as true, whatever it is going to say.
      if (verified instanceof Promise) {
        verified.catch(() => {})
        throw wrongOption('WebSocketServer', 'what verifyClient returns', 'true or false (or give it a callback)', verified)
      }
      this.#decide(Boolean(verified))
    }
  }

  #decide(verified: boolean, code = 401, message = '', headers: Readonly<Record<string, string>> = {}): void {
    if (this.#decided) return
    this.#decided = true
    this.#done(verified ? undefined : { status: code, reason: message, fields: fieldsFrom(headers) })
  }
}

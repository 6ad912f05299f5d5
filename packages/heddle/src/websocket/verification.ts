import { fieldValue, type Head } from '../http/index.ts'
import { fieldsFrom } from '../web/index.ts'
import type { IncomingMessage } from '../node/index.ts'
import type { Refusal } from './agreement.ts'
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
    else this.#decide((this.#verify as (info: VerifyInfo) => boolean)(this.#info))
  }

  #decide(verified: boolean, code = 401, message = '', headers: Readonly<Record<string, string>> = {}): void {
    if (this.#decided) return
    this.#decided = true
    this.#done(verified ? undefined : { status: code, reason: message, fields: fieldsFrom(headers) })
  }
}

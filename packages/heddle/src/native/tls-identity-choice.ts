import { createHash } from 'node:crypto'
import type { OpenSsl } from './openssl.ts'
import { Alert, protocolViolation } from './tls-alert.ts'
import type { TlsCallbacks } from './tls-callbacks.ts'
import { readClientHello } from './tls-client-hello.ts'
import type { ReadyIdentity } from './tls-identities.ts'
import type { TlsSettings } from './tls-options.ts'

/** What a session is of its context. */
export interface SessionOwner {
  readonly openssl: OpenSsl
  readonly callbacks: TlsCallbacks
  readonly settings: TlsSettings
  /** Server: which identity a name has; undefined: none, a promise: not known yet. A throw refuses the handshake. */
  identityOf(serverName: string | undefined): ReadyIdentity | undefined | Promise<ReadyIdentity | undefined>
  callbackFailed(error: unknown): void
}

/** The session that an identity is chosen for. */
export interface ChoosingSession {
  readonly over: boolean
  /** Notes what the handshake ends with. */
  find(alert: number, message: string, code?: number): void
  /** It can go on. */
  wake(): void
}

/** How a server chooses its identity: at the ClientHello, once, even if another follows a HelloRetryRequest. */
export class IdentityChoice {
  serverName: string | undefined
  /** The alert with which a ClientHello is refused. */
  refusal: number
  #state: 'open' | 'asked' | 'chosen' | 'refused'
  readonly #owner: SessionOwner
  readonly #ssl: bigint
  readonly #resumptionContext: string
  readonly #session: ChoosingSession

  constructor(owner: SessionOwner, ssl: bigint, resumptionContext: string, session: ChoosingSession) {
    this.serverName = undefined
    this.refusal = Alert.internalError
    this.#state = 'open'
    this.#owner = owner
    this.#ssl = ssl
    this.#resumptionContext = resumptionContext
    this.#session = session
  }

  /** Called by OpenSSL. True: go on, false: refused, undefined: wait and call again. */
  clientHello(): boolean | undefined {
    if (this.#state === 'open') {
      const hello = readClientHello(this.#owner.openssl, this.#ssl)
      this.serverName = hello.serverName
      // RFC 9001 §8.4
      if (hello.compatible) this.#refuse(Alert.unexpectedMessage, 'the ClientHello has a legacy_session_id', protocolViolation)
      // RFC 9001 §8.1
      else if (!hello.hasAlpn) this.#refuse(Alert.noApplicationProtocol, 'the client offers no application protocol')
      // RFC 9001 §8.2
      else if (!hello.hasTransportParameters) this.#refuse(Alert.missingExtension, 'the client sent no transport parameters')
      else this.#ask()
    }
    return this.#state === 'asked' ? undefined : this.#state === 'chosen'
  }

  #ask(): void {
    let identity: ReadyIdentity | undefined | Promise<ReadyIdentity | undefined>
    try {
      identity = this.#owner.identityOf(this.serverName)
    } catch (error) {
      return this.#failed(error)
    }
    if (!(identity instanceof Promise)) return this.#use(identity)
    this.#state = 'asked'
    const settled = (settle: () => void): void => {
      if (this.#session.over) return
      settle()
      this.#session.wake()
    }
    identity.then(
      (chosen) => settled(() => this.#use(chosen)),
      (error: unknown) => settled(() => this.#failed(error)),
    )
  }

  /** At once, while the SSL_CTX is sure to be there. */
  #use(identity: ReadyIdentity | undefined): void {
    if (identity === undefined || !identity.usable) {
      return this.#refuse(Alert.unrecognizedName, `the server has no certificate for ${this.serverName ?? 'clients that name no host'}`)
    }
    const { f } = this.#owner.openssl
    // A resumed session is not verified again, so it is one of the same name, trust and limits, or none.
    const scope = `${identity.trust}\0${this.serverName ?? ''}\0${this.#resumptionContext}`
    const id = createHash('sha256').update(scope).digest()
    f.SSL_set_SSL_CTX(this.#ssl, identity.context)
    f.SSL_set_session_id_context(this.#ssl, id, id.length)
    this.#state = 'chosen'
  }

  #failed(error: unknown): void {
    this.#owner.callbackFailed(error)
    this.#refuse(Alert.internalError, 'the SNI callback failed')
  }

  #refuse(alert: number, message: string, code?: number): void {
    this.#session.find(alert, message, code)
    this.refusal = alert
    this.#state = 'refused'
  }
}

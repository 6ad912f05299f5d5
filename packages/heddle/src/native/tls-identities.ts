import { UsageError } from '../http/index.ts'
import type { OpenSsl } from './openssl.ts'
import type { TlsCallbacks } from './tls-callbacks.ts'
import { checkIdentity, completedIdentity, hasCertificate, type TlsIdentity, type TlsSettings } from './tls-options.ts'
import { makeSslContext } from './tls-ssl-context.ts'
import { trustFingerprint } from './tls-trust.ts'

/** One certificate, ready for handshakes. */
export interface ReadyIdentity {
  /** SSL_CTX */
  readonly context: bigint
  /** Tells whose client certificates are accepted. */
  readonly trust: string
  /** False: nothing to show; only a handshake for a name that has a certificate can go on. */
  readonly usable: boolean
}

/** Identities from the SNI callback that are kept, the latest asked for. */
const keptIdentities = 256

/** The identities of one context, by server name, until the next update. */
export class TlsIdentities {
  /** The options' own. */
  readonly own: ReadyIdentity
  readonly settings: TlsSettings
  readonly #openssl: OpenSsl
  readonly #callbacks: TlsCallbacks
  readonly #names: Map<string, ReadyIdentity>
  readonly #given: Map<TlsIdentity, ReadyIdentity>
  #closed: boolean

  /** Throws UsageError for identities that cannot be used. */
  constructor(openssl: OpenSsl, callbacks: TlsCallbacks, settings: TlsSettings) {
    this.settings = settings
    this.#openssl = openssl
    this.#callbacks = callbacks
    this.#names = new Map()
    this.#given = new Map()
    this.#closed = false
    const { names = {} } = settings
    if (settings.side === 'server' && !hasCertificate(settings) && Object.keys(names).length === 0 && settings.sniCallback === undefined) {
      throw new UsageError('tls needs a certificate: cert and key, or pfx')
    }
    this.own = this.#make(settings, 'the TLS identity')
    try {
      for (const [name, identity] of Object.entries(names)) {
        checkIdentity(`names.${name}`, identity)
        const complete = completedIdentity(identity, settings)
        if (!hasCertificate(complete)) throw new UsageError(`tls: the identity of ${name} has no certificate`)
        this.#names.set(name.toLowerCase(), this.#make(complete, `the identity of ${name}`))
      }
    } catch (error) {
      this.close()
      throw error
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  /** For a server name: the exact one, else the wildcard for its left-most label (RFC 9525 §6.3). */
  named(name: string): ReadyIdentity | undefined {
    const dot = name.indexOf('.')
    return this.#names.get(name) ?? (dot < 0 ? undefined : this.#names.get(`*${name.slice(dot)}`))
  }

  /** What the SNI callback gave. Throws UsageError for what cannot be used. */
  given(identity: TlsIdentity, name: string): ReadyIdentity {
    let ready = this.#given.get(identity)
    if (ready === undefined) {
      checkIdentity('sniCallback()', identity)
      const complete = completedIdentity(identity, this.settings)
      if (!hasCertificate(complete)) throw new UsageError(`tls: the identity of ${name} has no certificate`)
      ready = this.#make(complete, `the identity of ${name}`)
    }
    // The one asked for latest is the last.
    this.#given.delete(identity)
    this.#given.set(identity, ready)
    if (this.#given.size > keptIdentities) this.#dropOldest()
    return ready
  }

  /** Handshakes that use one of them already are not touched. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    const { f } = this.#openssl
    for (const { context } of [this.own, ...this.#names.values(), ...this.#given.values()]) f.SSL_CTX_free(context)
    this.#names.clear()
    this.#given.clear()
  }

  #dropOldest(): void {
    for (const [identity, { context }] of this.#given) {
      this.#given.delete(identity)
      this.#openssl.f.SSL_CTX_free(context)
      return
    }
  }

  #make(identity: TlsIdentity, what: string): ReadyIdentity {
    return {
      context: makeSslContext(this.#openssl, this.#callbacks, this.settings, identity, what),
      trust: this.settings.side === 'client' || this.settings.requestCert ? trustFingerprint(identity.ca) : '',
      usable: hasCertificate(identity),
    }
  }
}

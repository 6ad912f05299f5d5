import { hkdfSync } from 'node:crypto'
import { UsageError } from '../http/index.ts'
import type { OpenSsl } from './openssl.ts'
import type { TlsCallbacks } from './tls-callbacks.ts'
import { useIdentity } from './tls-certificates.ts'
import { hasCertificate, type TlsIdentity, type TlsSettings } from './tls-options.ts'
import { anyEarlyData } from './tls-ticket.ts'
import { useTrust } from './tls-trust.ts'

// Commands of SSL_CTX_ctrl and SSL_CTX_callback_ctrl (openssl/ssl.h, openssl/tls1.h).
const setMode = 33
const setCacheSize = 42
const setCacheMode = 44
const setServerNameCallback = 53
const setTicketKeys = 59
const setGroupsList = 92
const setMinimumVersion = 123
const setMaximumVersion = 124

const tls13 = 0x0304
const noAutoChain = 0x8 // SSL_MODE_NO_AUTO_CHAIN
// Sessions reach the client by its callback, a server keeps those that early data needs.
const cacheClientOnly = 0x1 | 0x300 // SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
const cacheServer = 0x2 // SSL_SESS_CACHE_SERVER
/** Sessions a server keeps for early data, about 1 KB each; the oldest goes first. */
const keptSessions = 10_000
const serverPreference = 1n << 22n // SSL_OP_CIPHER_SERVER_PREFERENCE
const prioritizeChaCha = 1n << 21n // SSL_OP_PRIORITIZE_CHACHA
const verifyPeer = 1 // SSL_VERIFY_PEER
const requirePeer = 3 // … | SSL_VERIFY_FAIL_IF_NO_PEER_CERT

/** Makes an SSL_CTX of `identity`, which is complete. The caller frees it. Throws UsageError for what cannot be used; `what` names the identity. */
export function makeSslContext(
  openssl: OpenSsl,
  callbacks: TlsCallbacks,
  settings: TlsSettings,
  identity: TlsIdentity,
  what: string,
): bigint {
  const { f } = openssl
  f.ERR_clear_error()
  const context = f.SSL_CTX_new(f.TLS_method())
  if (context === 0n) throw new UsageError(`${what} cannot be used: ${openssl.drainErrors().join(', ')}`)
  try {
    setUp(openssl, callbacks, settings, context)
    useIdentity(openssl, context, identity, what)
    if (settings.side === 'server') setUpServer(openssl, callbacks, settings, context, identity, what)
    else setUpClient(openssl, callbacks, settings, context, identity, what)
  } catch (error) {
    f.SSL_CTX_free(context)
    throw error
  } finally {
    f.ERR_clear_error()
  }
  return context
}

function setUp(openssl: OpenSsl, callbacks: TlsCallbacks, { groups, ciphers, keylog }: TlsSettings, context: bigint): void {
  const { f } = openssl
  // RFC 9001 §4.2
  openssl.control(context, setMinimumVersion, tls13, null)
  openssl.control(context, setMaximumVersion, tls13, null)
  openssl.control(context, setMode, noAutoChain, null)
  if (f.SSL_CTX_set_ciphersuites(context, ciphers.join(':')) !== 1) {
    throw new UsageError(`tls: ciphers cannot be used: ${openssl.drainErrors().join(', ')}`)
  }
  if (openssl.control(context, setGroupsList, 0, groups) !== 1) {
    throw new UsageError(`tls: groups ${JSON.stringify(groups)} cannot be used: ${openssl.drainErrors().join(', ')}`)
  }
  if (keylog !== undefined) f.SSL_CTX_set_keylog_callback(context, callbacks.keylog)
}

function setUpClient(
  openssl: OpenSsl,
  callbacks: TlsCallbacks,
  { rejectUnauthorized }: TlsSettings,
  context: bigint,
  identity: TlsIdentity,
  what: string,
): void {
  const { f } = openssl
  useTrust(openssl, context, identity.ca, false, what)
  // Without it OpenSSL still verifies, and tells the result.
  f.SSL_CTX_set_verify(context, rejectUnauthorized ? verifyPeer : 0, null)
  openssl.control(context, setCacheMode, cacheClientOnly, null)
  f.SSL_CTX_sess_set_new_cb(context, callbacks.newSession)
}

function setUpServer(
  openssl: OpenSsl,
  callbacks: TlsCallbacks,
  settings: TlsSettings,
  context: bigint,
  identity: TlsIdentity,
  what: string,
): void {
  const { f } = openssl
  f.SSL_CTX_set_options(context, serverPreference | prioritizeChaCha)
  f.SSL_CTX_set_alpn_select_cb(context, callbacks.alpn, null)
  f.SSL_CTX_set_client_hello_cb(context, callbacks.clientHello, null)
  f.SSL_CTX_callback_ctrl(context, setServerNameCallback, callbacks.serverName)
  if (settings.requestCert) {
    if (identity.ca === undefined && hasCertificate(identity)) {
      throw new UsageError(`${what} cannot be used: requestCert needs ca, the authorities whose client certificates are accepted`)
    }
    if (identity.ca !== undefined) useTrust(openssl, context, identity.ca, true, what)
    if (settings.rejectUnauthorized) f.SSL_CTX_set_verify(context, requirePeer, null)
    else f.SSL_CTX_set_verify(context, verifyPeer, callbacks.acceptAny)
  }
  openssl.control(context, setCacheMode, cacheServer, null)
  openssl.control(context, setCacheSize, keptSessions, null)
  if (!settings.tickets) f.SSL_CTX_set_num_tickets(context, 0n)
  if (settings.earlyData) f.SSL_CTX_set_max_early_data(context, anyEarlyData)
  openssl.control(context, setTicketKeys, 80, ticketKeys(settings.ticketKeys))
}

/** OpenSSL's 80 octets (name, AES-256, HMAC) of keys given in whatever length; no ticket of TLS over TCP is one of QUIC. */
function ticketKeys(given: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', given, new Uint8Array(0), 'heddle quic tickets', 80))
}

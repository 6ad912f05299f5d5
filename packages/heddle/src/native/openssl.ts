import type { ArgumentType, DynamicLibrary, FunctionDefinitions, WrappedFunctionsFromDefinitions } from 'node:ffi'
import type { Ffi, NativeLibrary } from './ffi.ts'
import type { Unavailable } from './types.ts'

/** C's `long` is the machine's word, but on Windows. Every `i64` below is one. */
const longIsInt = process.platform === 'win32'

/** What is called of libssl and libcrypto. Pointers are BigInts, or typed arrays whose memory is used during the call only. */
const definitions = {
  ERR_clear_error: {},
  ERR_get_error: { return: 'u64' },
  ERR_reason_error_string: { return: 'pointer', arguments: ['u64'] },
  X509_verify_cert_error_string: { return: 'pointer', arguments: ['i64'] },

  BIO_new_mem_buf: { return: 'pointer', arguments: ['pointer', 'i32'] },
  BIO_free: { return: 'i32', arguments: ['pointer'] },
  PEM_read_bio_X509: { return: 'pointer', arguments: ['pointer', 'pointer', 'pointer', 'pointer'] },
  X509_free: { arguments: ['pointer'] },
  i2d_X509: { return: 'i32', arguments: ['pointer', 'pointer'] },
  d2i_AutoPrivateKey: { return: 'pointer', arguments: ['pointer', 'pointer', 'i64'] },
  EVP_PKEY_free: { arguments: ['pointer'] },
  d2i_PKCS12: { return: 'pointer', arguments: ['pointer', 'pointer', 'i64'] },
  PKCS12_parse: { return: 'i32', arguments: ['pointer', 'pointer', 'pointer', 'pointer', 'pointer'] },
  PKCS12_free: { arguments: ['pointer'] },
  OPENSSL_sk_num: { return: 'i32', arguments: ['pointer'] },
  OPENSSL_sk_value: { return: 'pointer', arguments: ['pointer', 'i32'] },
  OPENSSL_sk_free: { arguments: ['pointer'] },
  X509_STORE_new: { return: 'pointer' },
  X509_STORE_add_cert: { return: 'i32', arguments: ['pointer', 'pointer'] },
  X509_STORE_free: { arguments: ['pointer'] },
  X509_VERIFY_PARAM_set1_ip_asc: { return: 'i32', arguments: ['pointer', 'pointer'] },

  TLS_method: { return: 'pointer' },
  SSL_CTX_new: { return: 'pointer', arguments: ['pointer'] },
  SSL_CTX_free: { arguments: ['pointer'] },
  SSL_CTX_ctrl: { return: 'i64', arguments: ['pointer', 'i32', 'i64', 'pointer'] },
  SSL_CTX_callback_ctrl: { return: 'i64', arguments: ['pointer', 'i32', 'pointer'] },
  SSL_CTX_set_options: { return: 'u64', arguments: ['pointer', 'u64'] },
  SSL_CTX_set_ciphersuites: { return: 'i32', arguments: ['pointer', 'pointer'] },
  SSL_CTX_use_certificate: { return: 'i32', arguments: ['pointer', 'pointer'] },
  SSL_CTX_use_PrivateKey: { return: 'i32', arguments: ['pointer', 'pointer'] },
  SSL_CTX_check_private_key: { return: 'i32', arguments: ['pointer'] },
  SSL_CTX_set1_cert_store: { arguments: ['pointer', 'pointer'] },
  SSL_CTX_add_client_CA: { return: 'i32', arguments: ['pointer', 'pointer'] },
  SSL_CTX_set_alpn_select_cb: { arguments: ['pointer', 'pointer', 'pointer'] },
  SSL_CTX_set_client_hello_cb: { arguments: ['pointer', 'pointer', 'pointer'] },
  SSL_CTX_set_keylog_callback: { arguments: ['pointer', 'pointer'] },
  SSL_CTX_sess_set_new_cb: { arguments: ['pointer', 'pointer'] },
  SSL_CTX_set_max_early_data: { return: 'i32', arguments: ['pointer', 'u32'] },
  SSL_CTX_set_num_tickets: { return: 'i32', arguments: ['pointer', 'u64'] },
  SSL_CTX_set_verify: { arguments: ['pointer', 'i32', 'pointer'] },

  SSL_new: { return: 'pointer', arguments: ['pointer'] },
  SSL_free: { arguments: ['pointer'] },
  SSL_ctrl: { return: 'i64', arguments: ['pointer', 'i32', 'i64', 'pointer'] },
  SSL_set_SSL_CTX: { return: 'pointer', arguments: ['pointer', 'pointer'] },
  SSL_set_accept_state: { arguments: ['pointer'] },
  SSL_set_connect_state: { arguments: ['pointer'] },
  SSL_set_shutdown: { arguments: ['pointer', 'i32'] },
  SSL_set_quic_tls_cbs: { return: 'i32', arguments: ['pointer', 'pointer', 'pointer'] },
  SSL_set_quic_tls_transport_params: { return: 'i32', arguments: ['pointer', 'pointer', 'u64'] },
  SSL_set_quic_tls_early_data_enabled: { return: 'i32', arguments: ['pointer', 'i32'] },
  SSL_set_alpn_protos: { return: 'i32', arguments: ['pointer', 'pointer', 'u32'] },
  SSL_set_hostflags: { arguments: ['pointer', 'u32'] },
  SSL_set1_host: { return: 'i32', arguments: ['pointer', 'pointer'] },
  SSL_get0_param: { return: 'pointer', arguments: ['pointer'] },
  SSL_set_session_id_context: { return: 'i32', arguments: ['pointer', 'pointer', 'u32'] },
  SSL_do_handshake: { return: 'i32', arguments: ['pointer'] },
  SSL_read: { return: 'i32', arguments: ['pointer', 'pointer', 'i32'] },
  SSL_get_error: { return: 'i32', arguments: ['pointer', 'i32'] },
  SSL_is_init_finished: { return: 'i32', arguments: ['pointer'] },
  SSL_get_verify_result: { return: 'i64', arguments: ['pointer'] },
  SSL_get_early_data_status: { return: 'i32', arguments: ['pointer'] },
  SSL_session_reused: { return: 'i32', arguments: ['pointer'] },
  SSL_get0_alpn_selected: { arguments: ['pointer', 'pointer', 'pointer'] },
  SSL_get1_peer_certificate: { return: 'pointer', arguments: ['pointer'] },
  SSL_get0_group_name: { return: 'pointer', arguments: ['pointer'] },
  SSL_get_current_cipher: { return: 'pointer', arguments: ['pointer'] },
  SSL_get_pending_cipher: { return: 'pointer', arguments: ['pointer'] },
  SSL_CIPHER_get_protocol_id: { return: 'u16', arguments: ['pointer'] },
  SSL_client_hello_get0_ext: { return: 'i32', arguments: ['pointer', 'u32', 'pointer', 'pointer'] },
  SSL_client_hello_get0_session_id: { return: 'u64', arguments: ['pointer', 'pointer'] },

  SSL_get_session: { return: 'pointer', arguments: ['pointer'] },
  SSL_set_session: { return: 'i32', arguments: ['pointer', 'pointer'] },
  SSL_SESSION_free: { arguments: ['pointer'] },
  SSL_SESSION_get0_cipher: { return: 'pointer', arguments: ['pointer'] },
  SSL_SESSION_get_max_early_data: { return: 'u32', arguments: ['pointer'] },
  SSL_SESSION_set_max_early_data: { return: 'i32', arguments: ['pointer', 'u32'] },
  i2d_SSL_SESSION: { return: 'i32', arguments: ['pointer', 'pointer'] },
  d2i_SSL_SESSION: { return: 'pointer', arguments: ['pointer', 'pointer', 'i64'] },
} as const

const onThisPlatform = (longIsInt ? withInts(definitions) : definitions) as typeof definitions

function withInts(all: FunctionDefinitions): FunctionDefinitions {
  const narrow = (type: ArgumentType): ArgumentType => (type === 'i64' ? 'i32' : type)
  const signatures = Object.entries(all).map(([name, { return: result = 'void', arguments: args = [] }]) => [
    name,
    { return: result === 'i64' ? 'i32' : result, arguments: args.map(narrow) },
  ])
  return Object.fromEntries(signatures) as FunctionDefinitions
}

/** The functions of libssl and libcrypto that are called. */
export type OpenSslFunctions = WrappedFunctionsFromDefinitions<typeof definitions>

/** OpenSSL as this thread calls it. */
export class OpenSsl {
  readonly ffi: Ffi
  readonly library: DynamicLibrary
  readonly f: OpenSslFunctions
  /** Where functions put pointers and lengths; what is in it holds until the next call. */
  readonly out: BigUint64Array

  constructor({ ffi, library }: NativeLibrary) {
    this.ffi = ffi
    this.library = library
    this.f = library.getFunctions(onThisPlatform)
    this.out = new BigUint64Array(new ArrayBuffer(32))
  }

  /** A number as C's `long`. */
  long(value: number): bigint {
    return longIsInt ? (value as unknown as bigint) : BigInt(value)
  }

  /** `SSL_CTX_ctrl`, which most settings are macros for. */
  control(context: bigint, command: number, value: number, pointer: bigint | string | Uint8Array | null): number {
    return Number(this.f.SSL_CTX_ctrl(context, command, this.long(value), pointer))
  }

  /** A copy of what is at `pointer`. */
  bytes(pointer: bigint, length: number): Uint8Array {
    // `toBuffer` of nothing may be given no pointer.
    return length === 0 ? new Uint8Array(0) : this.ffi.toBuffer(pointer, length, true)
  }

  text(pointer: bigint): string | undefined {
    return this.ffi.toString(pointer) ?? undefined
  }

  /** The reasons of everything in the thread's error queue, which is empty then. Node's own TLS and crypto share it. */
  drainErrors(): string[] {
    const reasons: string[] = []
    for (let code = this.f.ERR_get_error(); code !== 0n; code = this.f.ERR_get_error()) {
      const text = this.text(this.f.ERR_reason_error_string(code)) ?? `error ${code.toString(16)}`
      if (!reasons.includes(text)) reasons.push(text)
    }
    return reasons
  }
}

/** OpenSSL with the TLS callbacks for QUIC, or why there is none. `version` is that of Node's OpenSSL. */
export function openOpenSsl(native: NativeLibrary, version: string | undefined): OpenSsl | Unavailable {
  try {
    native.library.getSymbol('SSL_set_quic_tls_cbs')
  } catch {
    return { unavailable: `HTTP/3 needs OpenSSL ≥ 3.5; this Node has ${version === undefined ? 'none' : `OpenSSL ${version}`}` }
  }
  try {
    return new OpenSsl(native)
  } catch (error) {
    return { unavailable: `HTTP/3 cannot use this Node's OpenSSL ${version}: ${error instanceof Error ? error.message : String(error)}` }
  }
}

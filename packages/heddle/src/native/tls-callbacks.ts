import type { ArgumentType, CallbackFunctionFromSignature, FunctionSignature } from 'node:ffi'
import type { OpenSsl } from './openssl.ts'

/** What OpenSSL calls back for one `SSL`. */
export interface CallbackTarget {
  /** The first thing that one of these threw. */
  failure: { readonly error: unknown } | undefined
  /** True: it is told nothing any more. */
  readonly over: boolean
  send(pointer: bigint, length: number): void
  /** Where octets are that can be read now, and how many; undefined: none. */
  available(): { readonly pointer: bigint; readonly length: number } | undefined
  release(byteCount: number): void
  secret(level: number, direction: number, pointer: bigint, length: number): void
  /** False: they are refused. */
  transportParameters(pointer: bigint, length: number): boolean
  alert(alert: number): void
  /** True: goes on, false: it is refused with `alert`, undefined: waits. */
  clientHello(): boolean | undefined
  readonly refusal: number
  /** Of `offered` (RFC 7301 §3.1) where the chosen protocol's name begins, behind its length; -1: there is none in common. */
  chooseProtocol(offered: Uint8Array): number
  ticket(session: bigint): void
  keylog(line: string): void
}

// OSSL_FUNC_SSL_QUIC_TLS_* (openssl/core_dispatch.h)
const cryptoSend = 2001
const cryptoReceive = 2002
const cryptoRelease = 2003
const yieldSecret = 2004
const gotTransportParameters = 2005
const sendAlert = 2006

const alertFatal = 2 // SSL_TLSEXT_ERR_ALERT_FATAL
const helloRetry = -1 // SSL_CLIENT_HELLO_RETRY

/**
 * The functions that OpenSSL calls: one set for all sessions of a thread, told apart by their `SSL`. A throw out of
 * one of them ends the process, which nobody can prevent then. So each catches everything, keeps it for after the
 * outer call, and says that it failed.
 */
export class TlsCallbacks {
  /** By their `SSL`; one is there from before its first call until after it is freed. */
  readonly targets: Map<bigint, CallbackTarget>
  /** OSSL_DISPATCH, of which OpenSSL keeps the address. */
  readonly dispatch: BigInt64Array
  readonly alpn: bigint
  readonly clientHello: bigint
  readonly serverName: bigint
  readonly newSession: bigint
  readonly keylog: bigint
  readonly acceptAny: bigint
  readonly #openssl: OpenSsl

  constructor(openssl: OpenSsl) {
    const { ffi } = openssl
    this.#openssl = openssl
    this.targets = new Map()
    this.dispatch = this.#dispatch()
    this.alpn = this.#callback(
      alertFatal,
      ['pointer', 'pointer', 'pointer', 'u32', 'pointer'],
      (target, chosenAt: bigint, lengthAt: bigint, offered: bigint, length: number) => {
        const bytes = openssl.bytes(offered, length)
        const start = target.chooseProtocol(bytes)
        if (start < 0) return alertFatal
        // The name that is chosen may stay where the client's list is.
        ffi.setUint64(chosenAt, 0, offered + BigInt(start))
        ffi.setUint8(lengthAt, 0, bytes[start - 1] as number)
        return 0
      },
    )
    this.clientHello = this.#callback(0, ['pointer', 'pointer'], (target, alertAt: bigint) => {
      ffi.setInt32(alertAt, 0, 80)
      const answer = target.clientHello()
      if (answer === undefined) return helloRetry
      if (!answer) ffi.setInt32(alertAt, 0, target.refusal)
      return answer ? 1 : 0
    })
    // RFC 6066 §3: every name is acknowledged; which identity it has was decided before.
    this.serverName = this.#callback(0, ['pointer', 'pointer'], () => 0)
    // 0: the session stays OpenSSL's.
    this.newSession = this.#callback(0, ['pointer'], (target, session: bigint) => {
      target.ticket(session)
      return 0
    })
    this.keylog = this.#callback(0, ['pointer'], (target, line: bigint) => {
      target.keylog(openssl.text(line) ?? '')
      return 0
    })
    // Whatever is wrong with the client's certificate: the result of the verification says it.
    this.acceptAny = openssl.library.registerCallback({ return: 'i32', arguments: ['i32', 'pointer'] }, () => 1)
  }

  #dispatch(): BigInt64Array {
    const openssl = this.#openssl
    const { ffi } = openssl
    const functions: readonly (readonly [number, bigint])[] = [
      [
        cryptoSend,
        this.#callback(0, ['pointer', 'u64', 'pointer', 'pointer'], (target, data: bigint, length: bigint, consumedAt: bigint) => {
          target.send(data, Number(length))
          ffi.setUint64(consumedAt, 0, length)
          return 1
        }),
      ],
      [
        cryptoReceive,
        this.#callback(0, ['pointer', 'pointer', 'pointer'], (target, pointerAt: bigint, lengthAt: bigint) => {
          const piece = target.available()
          ffi.setUint64(pointerAt, 0, piece?.pointer ?? 0n)
          ffi.setUint64(lengthAt, 0, piece?.length ?? 0)
          return 1
        }),
      ],
      [
        cryptoRelease,
        this.#callback(1, ['u64', 'pointer'], (target, byteCount: bigint) => {
          target.release(Number(byteCount))
          return 1
        }),
      ],
      [
        yieldSecret,
        this.#callback(
          0,
          ['u32', 'i32', 'pointer', 'u64', 'pointer'],
          (target, level: number, direction: number, secret: bigint, length: bigint) => {
            target.secret(level, direction, secret, Number(length))
            return 1
          },
        ),
      ],
      [
        gotTransportParameters,
        this.#callback(0, ['pointer', 'u64', 'pointer'], (target, parameters: bigint, length: bigint) =>
          target.transportParameters(parameters, Number(length)) ? 1 : 0,
        ),
      ],
      [
        sendAlert,
        this.#callback(0, ['u8', 'pointer'], (target, alert: number) => {
          target.alert(alert)
          return 1
        }),
      ],
    ]
    // Pairs of an int and a pointer, and a pair of zeros at the end.
    const table = new BigInt64Array(new ArrayBuffer((functions.length + 1) * 16))
    for (const [i, [id, pointer]] of functions.entries()) table.set([BigInt(id), pointer], i * 2)
    return table
  }

  /** A C function with the `SSL` as its first argument, and `args` as the others. `failed` is its answer where `body` throws. */
  #callback<A extends readonly (bigint | number)[]>(
    failed: number,
    args: readonly ArgumentType[],
    body: (target: CallbackTarget, ...values: A) => number,
  ): bigint {
    const { targets } = this
    const call = (ssl: bigint, ...values: A): number => {
      let target: CallbackTarget | undefined
      try {
        target = targets.get(ssl)
        return target === undefined || target.over ? failed : body(target, ...values)
      } catch (error) {
        // No call here: the stack may be at its end.
        if (target !== undefined) target.failure ??= { error }
        return failed
      }
    }
    const signature: FunctionSignature = { return: 'i32', arguments: ['pointer', ...args] }
    return this.#openssl.library.registerCallback(signature, call as unknown as CallbackFunctionFromSignature<FunctionSignature>)
  }
}

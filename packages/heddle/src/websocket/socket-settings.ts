import { isUtf8 } from 'node:buffer'
import { checkLimits } from '../http/index.ts'
import { codecSettings, webSocketLimits, type DeflateParameters, type WebSocketOptions } from '../ws/index.ts'
import { zlibCodec } from './codec.ts'
import { compressionChecks } from './deflate-checks.ts'
import { randomMaskKey } from './mask-keys.ts'
import {
  aBoolean,
  aClock,
  aFragmentSize,
  aFunction,
  anInteger,
  anObject,
  aString,
  check,
  checkOptions,
  wrongOption,
  type Check,
  type OptionChecks,
} from './option-checks.ts'
import type { SocketDeflate, SocketLimits, SocketOptions } from './socket-options.ts'

/** The limits of a server's socket when nothing is said; a client's `maxBufferedAmount` is 256 MiB. */
export const socketLimits: SocketLimits = Object.freeze({
  ...webSocketLimits,
  closeTimeout: 5_000,
  maxUnreadSize: 65_536,
  maxBufferedAmount: 16_777_216,
})
/** What a client sends is what its own program wants to be sent, as a rule: one that echoes sends what its server wants. */
const clientLimits: SocketLimits = Object.freeze({ ...socketLimits, maxBufferedAmount: 268_435_456 })

const role: Check = check("'client' or 'server'", (value) => value === 'client' || value === 'server')
const checks: OptionChecks<SocketOptions> = {
  role,
  protocol: aString,
  extensions: aString,
  deflate: anObject,
  limits: anObject,
  fragmentSize: aFragmentSize,
  clock: aClock,
  maskKey: aFunction,
  opened: aBoolean,
}
const deflateSettings: OptionChecks<SocketDeflate> = { ...compressionChecks, parameters: anObject }
const parameterChecks: OptionChecks<DeflateParameters> = {
  serverNoContextTakeover: aBoolean,
  clientNoContextTakeover: aBoolean,
  serverMaxWindowBits: anInteger(8, 15),
  clientMaxWindowBits: anInteger(8, 15),
}

/** Limits that were checked and filled up, by the object they were given as: a server has one for all. */
const known = { server: new WeakMap<Partial<SocketLimits>, SocketLimits>(), client: new WeakMap<Partial<SocketLimits>, SocketLimits>() }

/** The limits that `given` comes to in a role. Throws UsageError for one that is unknown or no number. */
export function limitsOf(given: Partial<SocketLimits> | undefined, role: SocketOptions['role'], face = 'Socket'): SocketLimits {
  const defaults = role === 'server' ? socketLimits : clientLimits
  if (given === undefined) return defaults
  let limits = known[role].get(given)
  if (limits === undefined) {
    limits = Object.freeze({ ...defaults, ...checkLimits(face, 'limits', given, defaults) })
    known[role].set(given, limits)
  }
  return limits
}

/** Throws UsageError for options that are unknown or wrong. */
export function checkSocketOptions(options: SocketOptions): void {
  checkOptions('Socket', '', options, checks)
  if (options.role === undefined) throw wrongOption('Socket', 'role', role.expected, undefined)
  const { deflate } = options
  if (deflate === undefined) return
  checkOptions('Socket', 'deflate', deflate, deflateSettings)
  checkOptions('Socket', 'deflate.parameters', deflate.parameters, parameterChecks)
}

/** What the engine is told. */
export function connectionOptions(options: SocketOptions, limits: SocketLimits): WebSocketOptions {
  const { role, deflate, fragmentSize, maskKey } = options
  return {
    role,
    limits: limits === socketLimits || limits === clientLimits ? undefined : limits,
    maskKey: role === 'client' ? (maskKey ?? randomMaskKey) : undefined,
    deflate:
      deflate === undefined
        ? undefined
        : {
            parameters: deflate.parameters,
            codec: zlibCodec(codecSettings(role, deflate.parameters), deflate),
            threshold: deflate.threshold,
          },
    fragmentSize,
    isUtf8,
  }
}

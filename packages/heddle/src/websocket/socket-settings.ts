import { isUtf8 } from 'node:buffer'
import { checkLimits, checkOptionNames, UsageError, type OptionNames } from '../http/index.ts'
import { codecSettings, webSocketLimits, type WebSocketOptions } from '../ws/index.ts'
import { zlibCodec } from './codec.ts'
import { randomMaskKey } from './mask-keys.ts'
import type { SocketDeflate, SocketLimits, SocketOptions } from './socket-options.ts'

/** The limits of a server's socket when nothing is said; a client's has no `maxBufferedAmount`. */
export const socketLimits: SocketLimits = Object.freeze({
  ...webSocketLimits,
  closeTimeout: 5_000,
  maxUnreadSize: 65_536,
  maxBufferedAmount: 16_777_216,
})
/** What a client sends is what its own program wants to be sent. */
const clientLimits: SocketLimits = Object.freeze({ ...socketLimits, maxBufferedAmount: Infinity })

const optionNames: OptionNames<SocketOptions> = {
  role: true,
  protocol: true,
  extensions: true,
  deflate: true,
  limits: true,
  fragmentSize: true,
  clock: true,
  maskKey: true,
  opened: true,
}
const deflateNames: OptionNames<SocketDeflate> = {
  parameters: true,
  threshold: true,
  level: true,
  memoryLevel: true,
  contextSize: true,
}

/** Limits that were checked and filled up, by the object they were given as: a server has one for all. */
const known = { server: new WeakMap<Partial<SocketLimits>, SocketLimits>(), client: new WeakMap<Partial<SocketLimits>, SocketLimits>() }

/** The limits that `given` comes to in a role. Throws UsageError for one that is unknown or no number. */
export function limitsOf(given: Partial<SocketLimits> | undefined, role: SocketOptions['role']): SocketLimits {
  const defaults = role === 'server' ? socketLimits : clientLimits
  if (given === undefined) return defaults
  let limits = known[role].get(given)
  if (limits === undefined) {
    limits = Object.freeze({ ...defaults, ...checkLimits('Socket', 'limits', given, defaults) })
    known[role].set(given, limits)
  }
  return limits
}

/** Throws UsageError for options that are unknown or wrong. */
export function checkSocketOptions(options: SocketOptions): void {
  checkOptionNames('Socket', '', options, optionNames)
  const { role, deflate, fragmentSize } = options
  if (role !== 'client' && role !== 'server') throw new UsageError("Socket: role is 'client' or 'server'")
  if (fragmentSize !== undefined && !(fragmentSize >= 1)) throw new UsageError('Socket: fragmentSize is 1 or more')
  if (deflate === undefined) return
  checkOptionNames('Socket', 'deflate', deflate, deflateNames)
  checkNumber('level', deflate.level, -1, 9)
  checkNumber('memoryLevel', deflate.memoryLevel, 1, 9)
  checkNumber('contextSize', deflate.contextSize, 0, 32_768)
  checkNumber('threshold', deflate.threshold, 0, Infinity)
}

function checkNumber(name: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined || (value >= least && value <= most && (Number.isInteger(value) || value === Infinity))) return
  throw new UsageError(`Socket: deflate.${name} is an integer, ${least} ${most === Infinity ? 'or more' : `to ${most}`}`)
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

import { ByteReader, varintSize, writeVarint } from '../bytes/index.ts'
import { resetTokenSize } from './frame.ts'
import { maxConnectionIdSize } from './packet.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** RFC 9000 §18.2, RFC 9287 §3. */
const Id = {
  originalDestinationConnectionId: 0x00,
  maxIdleTimeout: 0x01,
  statelessResetToken: 0x02,
  maxUdpPayloadSize: 0x03,
  initialMaxData: 0x04,
  initialMaxStreamDataBidiLocal: 0x05,
  initialMaxStreamDataBidiRemote: 0x06,
  initialMaxStreamDataUni: 0x07,
  initialMaxStreamsBidi: 0x08,
  initialMaxStreamsUni: 0x09,
  ackDelayExponent: 0x0a,
  maxAckDelay: 0x0b,
  disableActiveMigration: 0x0c,
  preferredAddress: 0x0d,
  activeConnectionIdLimit: 0x0e,
  initialSourceConnectionId: 0x0f,
  retrySourceConnectionId: 0x10,
  greaseQuicBit: 0x2ab2,
} as const

/** The parameters that are one integer; each is read and written alike. RFC 9000 §18.2 gives the bounds. */
const integers: readonly {
  readonly id: number
  readonly field: IntegerField
  readonly absent: number
  readonly least: number
  readonly most: number
}[] = [
  { id: Id.maxIdleTimeout, field: 'maxIdleTimeout', absent: 0, least: 0, most: Infinity },
  { id: Id.maxUdpPayloadSize, field: 'maxUdpPayloadSize', absent: 65_527, least: 1200, most: Infinity },
  { id: Id.initialMaxData, field: 'initialMaxData', absent: 0, least: 0, most: Infinity },
  { id: Id.initialMaxStreamDataBidiLocal, field: 'initialMaxStreamDataBidiLocal', absent: 0, least: 0, most: Infinity },
  { id: Id.initialMaxStreamDataBidiRemote, field: 'initialMaxStreamDataBidiRemote', absent: 0, least: 0, most: Infinity },
  { id: Id.initialMaxStreamDataUni, field: 'initialMaxStreamDataUni', absent: 0, least: 0, most: Infinity },
  // RFC 9000 §4.6: more streams have no id.
  { id: Id.initialMaxStreamsBidi, field: 'initialMaxStreamsBidi', absent: 0, least: 0, most: 2 ** 60 },
  { id: Id.initialMaxStreamsUni, field: 'initialMaxStreamsUni', absent: 0, least: 0, most: 2 ** 60 },
  { id: Id.ackDelayExponent, field: 'ackDelayExponent', absent: 3, least: 0, most: 20 },
  { id: Id.maxAckDelay, field: 'maxAckDelay', absent: 25, least: 0, most: 2 ** 14 - 1 },
  { id: Id.activeConnectionIdLimit, field: 'activeConnectionIdLimit', absent: 2, least: 2, most: Infinity },
]
type IntegerField =
  | 'maxIdleTimeout'
  | 'maxUdpPayloadSize'
  | 'initialMaxData'
  | 'initialMaxStreamDataBidiLocal'
  | 'initialMaxStreamDataBidiRemote'
  | 'initialMaxStreamDataUni'
  | 'initialMaxStreamsBidi'
  | 'initialMaxStreamsUni'
  | 'ackDelayExponent'
  | 'maxAckDelay'
  | 'activeConnectionIdLimit'

/** Where a server would rather be talked to after the handshake (RFC 9000 §9.6). */
export interface PreferredAddress {
  /** 4 octets; all 0 for none. */
  readonly ipv4Address: Uint8Array
  readonly ipv4Port: number
  /** 16 octets; all 0 for none. */
  readonly ipv6Address: Uint8Array
  readonly ipv6Port: number
  /** 1–20 octets; its sequence number is 1. */
  readonly connectionId: Uint8Array
  /** 16 octets. */
  readonly statelessResetToken: Uint8Array
}

/** What one endpoint says of itself in the handshake (RFC 9000 §7.4, §18.2); begins with the RFC's defaults. */
export class TransportParameters {
  /** Server only: the Destination Connection ID of the client's first Initial packet. */
  originalDestinationConnectionId: Uint8Array | undefined
  /** ms; 0 for none. */
  maxIdleTimeout: number
  /** Server only: for connection id number 0. */
  statelessResetToken: Uint8Array | undefined
  /** Octets of UDP payload that are taken; 1,200 at least. */
  maxUdpPayloadSize: number
  initialMaxData: number
  /** For bidirectional streams that the endpoint which says this opens. */
  initialMaxStreamDataBidiLocal: number
  /** For bidirectional streams that its peer opens. */
  initialMaxStreamDataBidiRemote: number
  initialMaxStreamDataUni: number
  initialMaxStreamsBidi: number
  initialMaxStreamsUni: number
  ackDelayExponent: number
  /** ms. */
  maxAckDelay: number
  disableActiveMigration: boolean
  /** Server only. */
  preferredAddress: PreferredAddress | undefined
  activeConnectionIdLimit: number
  /** The Source Connection ID of the endpoint's first Initial packet. */
  initialSourceConnectionId: Uint8Array | undefined
  /** Server only: the Source Connection ID of its Retry packet. */
  retrySourceConnectionId: Uint8Array | undefined
  /** The fixed bit may be 0 in packets to this endpoint (RFC 9287). */
  greaseQuicBit: boolean

  constructor() {
    this.originalDestinationConnectionId = undefined
    this.maxIdleTimeout = 0
    this.statelessResetToken = undefined
    this.maxUdpPayloadSize = 65_527
    this.initialMaxData = 0
    this.initialMaxStreamDataBidiLocal = 0
    this.initialMaxStreamDataBidiRemote = 0
    this.initialMaxStreamDataUni = 0
    this.initialMaxStreamsBidi = 0
    this.initialMaxStreamsUni = 0
    this.ackDelayExponent = 3
    this.maxAckDelay = 25
    this.disableActiveMigration = false
    this.preferredAddress = undefined
    this.activeConnectionIdLimit = 2
    this.initialSourceConnectionId = undefined
    this.retrySourceConnectionId = undefined
    this.greaseQuicBit = false
  }
}

/**
 * The octets that TLS carries for `parameters`. A value that is the default is left out. `reserved`: the
 * number N of a parameter that means nothing, `31 * N + 27`, so that peers stay used to unknown ones
 * (RFC 9000 §18.1).
 */
export function encodeTransportParameters(parameters: TransportParameters, reserved?: number): Uint8Array {
  const out = new ParameterWriter()
  for (const { id, field, absent } of integers) if (parameters[field] !== absent) out.integer(id, parameters[field])
  out.octets(Id.originalDestinationConnectionId, parameters.originalDestinationConnectionId)
  out.octets(Id.statelessResetToken, parameters.statelessResetToken)
  out.octets(Id.initialSourceConnectionId, parameters.initialSourceConnectionId)
  out.octets(Id.retrySourceConnectionId, parameters.retrySourceConnectionId)
  out.octets(Id.preferredAddress, parameters.preferredAddress && encodePreferredAddress(parameters.preferredAddress))
  if (parameters.disableActiveMigration) out.octets(Id.disableActiveMigration, new Uint8Array(0))
  if (parameters.greaseQuicBit) out.octets(Id.greaseQuicBit, new Uint8Array(0))
  if (reserved !== undefined) out.octets(31 * reserved + 27, new Uint8Array(0))
  return out.bytes.slice(0, out.length)
}

/**
 * Reads what TLS carried into `into`, a fresh {@link TransportParameters}; the octets it keeps are
 * copies. Returns what breaks RFC 9000 §7.4 or §18.2, if anything does.
 */
export function decodeTransportParameters(bytes: Uint8Array, fromServer: boolean, into: TransportParameters): TransportFault | undefined {
  const reader = new ByteReader().start(bytes, 0, bytes.length)
  const seen = new Set<number>()
  while (reader.remaining > 0) {
    const id = reader.varint()
    const size = reader.varint()
    const start = reader.skip(size)
    if (reader.failed) return parameterFault('the transport parameters are cut off')
    // RFC 9000 §7.4. Numbers above 2^53 are rounded: two of those are not held to be one.
    if (seen.has(id) && id < 2 ** 53) return parameterFault(`transport parameter 0x${id.toString(16)} came twice`)
    seen.add(id)
    const reason = readParameter(into, id, new Uint8Array(bytes.subarray(start, start + size)), fromServer)
    if (reason !== '') return parameterFault(reason)
  }
  return undefined
}

/** Takes one parameter; returns what is wrong with it, or ''. */
function readParameter(into: TransportParameters, id: number, value: Uint8Array, fromServer: boolean): string {
  const integer = integers.find((entry) => entry.id === id)
  if (integer !== undefined) {
    const reader = new ByteReader().start(value, 0, value.length)
    const number = reader.varint()
    if (reader.failed || reader.remaining > 0) return `${integer.field} is not one integer`
    if (number < integer.least || number > integer.most) return `${integer.field} is out of its bounds`
    into[integer.field] = number
    return ''
  }
  switch (id) {
    case Id.originalDestinationConnectionId:
      into.originalDestinationConnectionId = value
      return checkConnectionId('originalDestinationConnectionId', value) || checkSender('originalDestinationConnectionId', fromServer)
    case Id.statelessResetToken:
      into.statelessResetToken = value
      if (value.length !== resetTokenSize) return 'statelessResetToken has not 16 octets'
      return checkSender('statelessResetToken', fromServer)
    case Id.disableActiveMigration:
      into.disableActiveMigration = true
      return value.length > 0 ? 'disableActiveMigration has a value' : ''
    case Id.preferredAddress:
      into.preferredAddress = decodePreferredAddress(value)
      if (into.preferredAddress === undefined) return 'preferredAddress cannot be read'
      return checkSender('preferredAddress', fromServer)
    case Id.initialSourceConnectionId:
      into.initialSourceConnectionId = value
      return checkConnectionId('initialSourceConnectionId', value)
    case Id.retrySourceConnectionId:
      into.retrySourceConnectionId = value
      return checkConnectionId('retrySourceConnectionId', value) || checkSender('retrySourceConnectionId', fromServer)
    case Id.greaseQuicBit:
      into.greaseQuicBit = true
      return value.length > 0 ? 'greaseQuicBit has a value' : ''
    default:
      // RFC 9000 §7.4.2: unknown parameters are ignored.
      return ''
  }
}

function checkConnectionId(name: string, id: Uint8Array): string {
  return id.length > maxConnectionIdSize ? `${name} is too long` : ''
}

/** RFC 9000 §18.2: a client must not send what only a server may. */
function checkSender(name: string, fromServer: boolean): string {
  return fromServer ? '' : `a client sent ${name}`
}

function encodePreferredAddress(address: PreferredAddress): Uint8Array {
  const { connectionId } = address
  const value = new Uint8Array(4 + 2 + 16 + 2 + 1 + connectionId.length + resetTokenSize)
  value.set(address.ipv4Address.subarray(0, 4), 0)
  value[4] = address.ipv4Port >>> 8
  value[5] = address.ipv4Port
  value.set(address.ipv6Address.subarray(0, 16), 6)
  value[22] = address.ipv6Port >>> 8
  value[23] = address.ipv6Port
  value[24] = connectionId.length
  value.set(connectionId, 25)
  value.set(address.statelessResetToken.subarray(0, resetTokenSize), 25 + connectionId.length)
  return value
}

function decodePreferredAddress(value: Uint8Array): PreferredAddress | undefined {
  const reader = new ByteReader().start(value, 0, value.length)
  const octets = (count: number): Uint8Array => {
    const start = reader.skip(count)
    return value.slice(start, reader.at)
  }
  const ipv4Address = octets(4)
  const ipv4Port = reader.uint16()
  const ipv6Address = octets(16)
  const ipv6Port = reader.uint16()
  const connectionId = octets(reader.uint8())
  const statelessResetToken = octets(resetTokenSize)
  if (reader.failed || reader.remaining > 0) return undefined
  // RFC 9000 §18.2: a connection id of length 0 is a TRANSPORT_PARAMETER_ERROR here.
  if (connectionId.length === 0 || connectionId.length > maxConnectionIdSize) return undefined
  return { ipv4Address, ipv4Port, ipv6Address, ipv6Port, connectionId, statelessResetToken }
}

function parameterFault(reason: string): TransportFault {
  return transportFault(TransportError.transportParameterError, 0, reason)
}

/** Appends parameters to an array that grows. */
class ParameterWriter {
  bytes: Uint8Array
  length: number

  constructor() {
    this.bytes = new Uint8Array(64)
    this.length = 0
  }

  integer(id: number, value: number): void {
    const size = varintSize(value)
    this.#begin(id, size)
    this.length = writeVarint(this.bytes, this.length, value)
  }

  octets(id: number, value: Uint8Array | undefined): void {
    if (value === undefined) return
    this.#begin(id, value.length)
    this.bytes.set(value, this.length)
    this.length += value.length
  }

  #begin(id: number, size: number): void {
    if (this.length + 16 + size > this.bytes.length) {
      const longer = new Uint8Array(this.bytes.length * 2 + size)
      longer.set(this.bytes)
      this.bytes = longer
    }
    this.length = writeVarint(this.bytes, writeVarint(this.bytes, this.length, id), size)
  }
}

/** What the transport parameters of the peer are held against once they were read. */
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'
import { TransportParameters } from './transport-parameters.ts'

/**
 * RFC 9000 §7.3: the connection ids that the peer's handshake packets bore are those it says in its
 * transport parameters. `retrySource`: the Source Connection ID of the Retry packet, if one came.
 * `originalDestination` and `retrySource` matter to a client only.
 */
export function checkConnectionIds(
  parameters: TransportParameters,
  fromServer: boolean,
  initialSource: Uint8Array,
  originalDestination: Uint8Array | undefined,
  retrySource: Uint8Array | undefined,
): TransportFault | undefined {
  if (!isSame(parameters.initialSourceConnectionId, initialSource)) return idFault('initial_source_connection_id')
  if (!fromServer) return undefined
  if (!isSame(parameters.originalDestinationConnectionId, originalDestination)) return idFault('original_destination_connection_id')
  if (!isSame(parameters.retrySourceConnectionId, retrySource)) return idFault('retry_source_connection_id')
  return undefined
}

const remembered = [
  'activeConnectionIdLimit',
  'initialMaxData',
  'initialMaxStreamDataBidiLocal',
  'initialMaxStreamDataBidiRemote',
  'initialMaxStreamDataUni',
  'initialMaxStreamsBidi',
  'initialMaxStreamsUni',
] as const

/**
 * RFC 9000 §7.4.1: the part of a server's parameters that a client keeps with a ticket, for 0-RTT. The
 * rest has its default.
 */
export function rememberedParameters(parameters: TransportParameters): TransportParameters {
  const kept = new TransportParameters()
  for (const field of remembered) kept[field] = parameters[field]
  kept.maxIdleTimeout = parameters.maxIdleTimeout
  kept.maxUdpPayloadSize = parameters.maxUdpPayloadSize
  kept.disableActiveMigration = parameters.disableActiveMigration
  kept.greaseQuicBit = parameters.greaseQuicBit
  return kept
}

/**
 * RFC 9000 §7.4.1: a server that accepts 0-RTT must not offer less than the client remembers. For the
 * server: do not accept 0-RTT if this is a fault; for the client: the connection ends.
 */
export function checkRemembered(kept: TransportParameters, fresh: TransportParameters): TransportFault | undefined {
  for (const field of remembered) {
    if (fresh[field] < kept[field]) return transportFault(TransportError.protocolViolation, 0, `0-RTT was accepted with a smaller ${field}`)
  }
  return undefined
}

function idFault(name: string): TransportFault {
  return transportFault(TransportError.transportParameterError, 0, `${name} is not the one of the packets`)
}

function isSame(said: Uint8Array | undefined, used: Uint8Array | undefined): boolean {
  if (said === undefined || used === undefined) return said === used
  return said.length === used.length && said.every((octet, at) => octet === used[at])
}

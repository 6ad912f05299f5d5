import type { QuicConnection } from './connection.ts'
import { mostConnectionIds, type IdIssuer } from './local-ids.ts'
import { encodeTransportParameters, TransportParameters } from './transport-parameters.ts'

/** A datagram of more octets is not taken: no port of ours receives one. */
const largestReceived = 2_048

/** The transport parameters that a connection tells its peer (RFC 9000 §18.2). */
export function ownParameters(connection: QuicConnection, issuer: IdIssuer): Uint8Array {
  const { options, isServer, localId } = connection
  const parameters = new TransportParameters()
  parameters.maxUdpPayloadSize = largestReceived
  parameters.maxIdleTimeout = options.maxIdleTimeout
  parameters.initialMaxData = options.initialMaxData
  parameters.initialMaxStreamDataBidiLocal = options.initialMaxStreamData
  parameters.initialMaxStreamDataBidiRemote = options.initialMaxStreamData
  parameters.initialMaxStreamDataUni = options.initialMaxStreamData
  parameters.initialMaxStreamsBidi = options.maxBidirectionalStreams
  parameters.initialMaxStreamsUni = options.maxUnidirectionalStreams
  parameters.activeConnectionIdLimit = mostConnectionIds
  parameters.initialSourceConnectionId = localId
  if (isServer) {
    parameters.originalDestinationConnectionId = connection.originalDestination
    parameters.retrySourceConnectionId = connection.retrySource
    parameters.statelessResetToken = issuer.resetToken(localId)
  }
  return encodeTransportParameters(parameters)
}

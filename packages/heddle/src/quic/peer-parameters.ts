import type { QuicConnection } from './connection.ts'
import { checkConnectionIds } from './parameter-checks.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'
import type { TransportParameters } from './transport-parameters.ts'

/** The peer's transport parameters came: they are held against its packets, and everybody is told what concerns them. */
export function applyPeerParameters(connection: QuicConnection, parameters: TransportParameters): TransportFault | undefined {
  const { isServer, peerInitialSource, originalDestination, retrySource, remoteIds } = connection
  const fault = checkConnectionIds(parameters, !isServer, peerInitialSource, originalDestination, retrySource)
  if (fault !== undefined) return fault
  const preferred = parameters.preferredAddress
  // RFC 9000 §18.2.
  if (preferred !== undefined && peerInitialSource.length === 0) {
    return transportFault(TransportError.transportParameterError, 0, 'a preferred address of a server without connection ids')
  }
  connection.idle.setPeer(parameters.maxIdleTimeout)
  connection.mtu.setPeer(parameters.maxUdpPayloadSize)
  connection.recovery.maxAckDelay = parameters.maxAckDelay
  if (parameters.statelessResetToken !== undefined) remoteIds.setFirstResetToken(parameters.statelessResetToken)
  connection.streams.setPeer(parameters)
  // RFC 9000 §5.1.1: nobody goes to that address here, but its id is one like the others.
  return preferred === undefined ? undefined : remoteIds.receiveNew(1, 0, preferred.connectionId, preferred.statelessResetToken)
}

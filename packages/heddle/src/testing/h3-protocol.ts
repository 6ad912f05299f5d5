import { ClientConnection, ServerConnection, type Http3Options } from '../h3/index.ts'
import type { ConformanceProtocol } from './conformance/stage.ts'
import { connectionInfo } from './network.ts'
import { quicDoubles, type QuicDoubleOptions } from './quic-double.ts'

/** HTTP/3 over QUIC in memory, with windows small enough to fill up, and streams that overtake each other. */
export const http3Protocol: ConformanceProtocol = {
  protocol: 'h3',
  receiveWindow: 65_536,
  connect(world, { clientHandler, serverHandler, clientLimits, serverLimits }) {
    const { random } = world
    const options: QuicDoubleOptions = {
      streamWindow: 65_536,
      connectionWindow: random.pick([70_000, 262_144, 4_194_304]),
      sendBuffer: 65_536,
      maxStreams: 100,
      delay: random.pick([0, 1, 20]),
      jitter: random.pick([0, 0, 5, 30]),
      pieces: random.pick([1_200, 'random']),
    }
    const doubles = quicDoubles(world, options)
    const http: Http3Options = { extendedConnect: true }
    const windows = { streamWindow: options.streamWindow, connectionWindow: options.connectionWindow }
    const client = new ClientConnection(
      connectionInfo('client'),
      clientHandler,
      doubles.client,
      { ...http, limits: { ...windows, ...clientLimits } },
      world.now(),
    )
    const server = new ServerConnection(
      connectionInfo('server'),
      serverHandler,
      doubles.server,
      { ...http, limits: { ...windows, ...serverLimits } },
      world.now(),
    )
    doubles.client.application = client
    doubles.server.application = server
    doubles.client.start()
    doubles.server.start()
    return {
      client,
      server,
      lose(loss) {
        doubles.client.lose(loss)
        doubles.server.lose(loss)
      },
      faults: doubles.faults,
    }
  },
}

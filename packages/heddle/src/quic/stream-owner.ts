import type { QuicConnection } from './connection.ts'
import type { QuicStream, QuicStreamHandler } from './stream.ts'
import type { StreamOwner } from './stream-set.ts'

/** What stands between the streams and the connection. Inside a run nobody has to be woken for what they have to send. */
export class StreamsOfConnection implements StreamOwner {
  readonly #connection: QuicConnection

  constructor(connection: QuicConnection) {
    this.#connection = connection
  }

  onStream(stream: QuicStream): QuicStreamHandler {
    return this.#connection.application.onStream(stream)
  }

  onStreamsAvailable(): void {
    const { handshake, closing, application } = this.#connection
    if (handshake.isComplete && closing.state === 'open') application.onStreamsAvailable()
  }

  onDirty(): void {
    this.#connection.wake()
  }

  get roundTripTime(): number {
    return this.#connection.roundTripTime
  }
}

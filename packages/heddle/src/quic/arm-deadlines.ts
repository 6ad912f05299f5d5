import type { QuicConnection } from './connection.ts'
import { Deadline, type Deadlines } from './deadlines.ts'

/** Sets the deadlines of an open connection to what its parts wait for. `isWatched`: the application wants the path kept alive. */
export function armDeadlines(connection: QuicConnection, deadlines: Deadlines, isWatched: boolean): void {
  const { recovery, now, spaces, idle, options } = connection
  deadlines.set(Deadline.recovery, recovery.deadline)
  let ackAt = Infinity
  for (const { received, isDiscarded } of spaces) {
    // One that is due already and did not leave waits for something else than time.
    if (!isDiscarded && !received.shouldAckNow && received.deadline < ackAt) ackAt = received.deadline
  }
  deadlines.set(Deadline.ack, ackAt)
  deadlines.set(Deadline.pacing, connection.sender.hasToSend ? recovery.sendDeadline(now) : Infinity)
  deadlines.set(Deadline.idle, idle.deadline(connection.probeTimeout))
  deadlines.set(Deadline.path, connection.paths.deadline)
  const keys = connection.applicationKeys
  // RFC 9001 §6.5.
  keys.retention = 3 * connection.probeTimeout
  deadlines.set(Deadline.keys, keys.deadline)
  const isKept = isWatched && options.keepAlive > 0 && connection.handshake.isComplete && !connection.pingWanted
  deadlines.set(Deadline.keepAlive, isKept ? idle.keepAliveAt(options.keepAlive) : Infinity)
}

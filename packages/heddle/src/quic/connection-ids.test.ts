import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Carried } from './carried.ts'
import { FrameReader } from './frame.ts'
import { FrameType } from './frame-type.ts'
import { LocalIds, mostConnectionIds } from './local-ids.ts'
import { PacketWriter } from './packet-writer.ts'
import { mostPendingRetirements, RemoteIds } from './remote-ids.ts'
import { TransportError } from './transport-error.ts'

function idOf(number: number): Uint8Array {
  return Uint8Array.of(0xc0, number >> 8, number & 0xff, 7, 7, 7, 7, 7)
}

function tokenOf(number: number): Uint8Array {
  return new Uint8Array(16).fill(number)
}

class Issuer {
  made = 0
  readonly retired: number[] = []
  issue(): Uint8Array {
    return idOf(++this.made)
  }
  resetToken(id: Uint8Array): Uint8Array {
    return tokenOf(id[2] as number)
  }
  retire(id: Uint8Array): void {
    this.retired.push(id[2] as number)
  }
}

/** What `write` appends to a packet with `room` octets: `[sequence, number of the id]`, or the sequences retired. */
function written(
  write: (writer: PacketWriter, packet: { carried: number[] }) => boolean,
  room = 1_000,
): { frames: number[][]; all: boolean; carried: number[] } {
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(room + 100), 0, room + 100)
  assert.ok(writer.startShort(idOf(0), 0, -1, 0, false))
  writer.limit = writer.at + room
  const { at: start } = writer
  const packet = { carried: [] as number[] }
  const all = write(writer, packet)
  const frames: number[][] = []
  const reader = new FrameReader(false)
  if (writer.at > start) {
    reader.start(writer.buffer, start, writer.at, 3)
    while (reader.next()) {
      if (reader.type === FrameType.retireConnectionId) frames.push([reader.sequence])
      else {
        assert.equal(writer.buffer[reader.resetTokenStart], writer.buffer[reader.connectionIdStart + 2], 'the token of the id')
        frames.push([reader.sequence, writer.buffer[reader.connectionIdStart + 2] as number])
      }
    }
    assert.equal(reader.fault, undefined)
  }
  return { frames, all, carried: packet.carried }
}

test('the peer gets as many ids as it stores, and another for each that it retires', () => {
  const issuer = new Issuer()
  const ids = new LocalIds(idOf(0), issuer)
  assert.equal(ids.hasToSend, false)
  ids.allow(4)
  assert.ok(ids.hasToSend)
  const write = (writer: PacketWriter, packet: { carried: number[] }): boolean => ids.maybeWriteFrames(writer, packet)
  const first = written(write)
  assert.deepEqual(first.frames, [
    [1, 1],
    [2, 2],
    [3, 3],
  ])
  assert.deepEqual(first.carried.slice(0, 4), [Carried.newConnectionId, 1, 0, 0])
  assert.deepEqual(written(write).frames, [])
  ids.onLost(2)
  ids.onLost(2)
  assert.deepEqual(written(write).frames, [[2, 2]], 'what was lost is sent again')
  assert.equal(ids.receiveRetire(0, idOf(1), 0, 8), undefined)
  assert.equal(ids.receiveRetire(0, idOf(1), 0, 8), undefined, 'the frame may come twice')
  assert.deepEqual(issuer.retired, [0])
  assert.deepEqual(written(write).frames, [[4, 4]])
  ids.onLost(0)
  assert.equal(ids.hasToSend, false, 'a retired id is not sent again')
  ids.close()
  assert.deepEqual(issuer.retired, [0, 1, 2, 3, 4])
  assert.equal(ids.hasToSend, false)
})

test('never more than eight, and frames that find no room wait', () => {
  const ids = new LocalIds(idOf(0), new Issuer())
  ids.allow(2 ** 60)
  assert.equal(ids.count, mostConnectionIds)
  const write = (writer: PacketWriter, packet: { carried: number[] }): boolean => ids.maybeWriteFrames(writer, packet)
  const part = written(write, 60)
  assert.deepEqual([part.frames.length, part.all], [2, false])
  assert.deepEqual(written(write).frames.length, 5)
})

test('retiring what was never issued, or what the packet was sent to, is a violation', () => {
  const ids = new LocalIds(idOf(0), new Issuer())
  ids.allow(2)
  assert.equal(ids.receiveRetire(2, idOf(0), 0, 8)?.code, TransportError.protocolViolation)
  assert.equal(ids.receiveRetire(0, idOf(0), 0, 8)?.code, TransportError.protocolViolation)
})

test('the peer’s ids: the next one for another path, and the old one retired', () => {
  const ids = new RemoteIds(idOf(0))
  assert.equal(ids.change(), false, 'there is no other')
  assert.equal(ids.receiveNew(1, 0, idOf(1), tokenOf(1)), undefined)
  assert.equal(ids.receiveNew(1, 0, idOf(1), tokenOf(1)), undefined, 'the frame may come twice')
  assert.equal(ids.count, 2)
  assert.ok(ids.change())
  assert.deepEqual(ids.current, idOf(1))
  assert.ok(ids.hasToSend)
  const write = (writer: PacketWriter, packet: { carried: number[] }): boolean => ids.maybeWriteFrames(writer, packet)
  assert.deepEqual(written(write).frames, [[0]])
  assert.deepEqual(written(write).frames, [])
  ids.onLost(0)
  assert.deepEqual(written(write).frames, [[0]])
  assert.equal(ids.pendingRetirements, 1)
  ids.onAcked(0)
  assert.equal(ids.pendingRetirements, 0)
})

test('an id given up does not come back when its frame is sent again', () => {
  const ids = new RemoteIds(idOf(0))
  ids.receiveNew(1, 0, idOf(1), tokenOf(1))
  ids.change()
  ids.receiveNew(2, 0, idOf(2), tokenOf(2))
  ids.change()
  assert.equal(ids.receiveNew(1, 0, idOf(1), tokenOf(1)), undefined)
  assert.equal(ids.count, 1)
  assert.equal(ids.receiveNew(3, 3, idOf(3), tokenOf(3)), undefined)
  assert.deepEqual(ids.current, idOf(3))
})

test('Retire Prior To moves to a later id at once', () => {
  const ids = new RemoteIds(idOf(0))
  ids.receiveNew(1, 0, idOf(1), tokenOf(1))
  assert.equal(ids.receiveNew(2, 2, idOf(2), tokenOf(2)), undefined)
  assert.deepEqual(ids.current, idOf(2))
  assert.deepEqual(
    written((writer, packet) => ids.maybeWriteFrames(writer, packet))
      .frames.flat()
      .toSorted(),
    [0, 1],
  )
  assert.equal(ids.receiveNew(1, 0, idOf(1), tokenOf(1)), undefined)
  assert.equal(ids.hasToSend, false, 'it is being retired')
  ids.onAcked(1)
  assert.equal(ids.receiveNew(1, 0, idOf(1), tokenOf(1)), undefined)
  assert.deepEqual(written((writer, packet) => ids.maybeWriteFrames(writer, packet)).frames, [[1]], 'a late one is retired')
})

test('contradictions end the connection', () => {
  const ids = new RemoteIds(idOf(0))
  ids.receiveNew(1, 0, idOf(1), tokenOf(1))
  assert.equal(ids.receiveNew(1, 0, idOf(2), tokenOf(1))?.code, TransportError.protocolViolation)
  assert.equal(ids.receiveNew(2, 0, idOf(1), tokenOf(1))?.code, TransportError.protocolViolation)
  assert.equal(ids.receiveNew(1, 0, idOf(1), tokenOf(2))?.code, TransportError.protocolViolation)
  assert.equal(new RemoteIds(new Uint8Array(0)).receiveNew(1, 0, idOf(1), tokenOf(1))?.code, TransportError.protocolViolation)
})

test('more ids than were allowed end the connection', () => {
  const ids = new RemoteIds(idOf(0))
  for (let i = 1; i < mostConnectionIds; i++) assert.equal(ids.receiveNew(i, 0, idOf(i), tokenOf(i)), undefined)
  assert.equal(ids.receiveNew(8, 1, idOf(8), tokenOf(8)), undefined, 'one was retired by the same frame')
  assert.equal(ids.receiveNew(9, 1, idOf(9), tokenOf(9))?.code, TransportError.connectionIdLimitError)
})

test('a flood of ids that retire each other ends the connection, and not its memory', () => {
  const ids = new RemoteIds(idOf(0))
  let sequence = 1
  let failed
  while ((failed = ids.receiveNew(sequence, sequence, idOf(sequence), tokenOf(1))) === undefined) sequence++
  assert.equal(failed.code, TransportError.connectionIdLimitError)
  assert.equal(sequence, mostPendingRetirements + 1)
})

test('a stateless reset is known by the tokens of the ids in use', () => {
  const ids = new RemoteIds(idOf(0))
  const datagram = Buffer.concat([Buffer.alloc(30, 1), tokenOf(9)])
  assert.equal(ids.isReset(datagram, 30), false)
  ids.setFirstResetToken(tokenOf(9))
  assert.ok(ids.isReset(datagram, 30))
  ids.receiveNew(1, 1, idOf(1), tokenOf(3))
  assert.equal(ids.isReset(datagram, 30), false, 'retired')
})

test('any frames in any order keep the tables small', () => {
  const frame = fc.record({ sequence: fc.nat(30), retirePriorTo: fc.nat(30), id: fc.nat(30), change: fc.boolean(), ack: fc.boolean() })
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 200 }), (frames) => {
      const ids = new RemoteIds(idOf(0))
      for (const { sequence, retirePriorTo, id, change, ack } of frames) {
        if (ids.receiveNew(sequence, Math.min(retirePriorTo, sequence), idOf(id), tokenOf(id)) !== undefined) return
        if (change) ids.change()
        if (ack) {
          for (const [retired] of written((writer, packet) => ids.maybeWriteFrames(writer, packet)).frames) ids.onAcked(retired as number)
          assert.equal(ids.pendingRetirements, 0)
        }
        assert.ok(ids.count >= 1 && ids.count <= mostConnectionIds)
        assert.equal(ids.current.length, 8)
      }
    }),
  )
})

/** With the reset tokens that are in use, as they were told of. */
function watched(): { ids: RemoteIds; inUse: Set<number> } {
  const inUse = new Set<number>()
  const onResetToken = (token: Uint8Array, isInUse: boolean): void => {
    const number = token[0] as number
    assert.equal(inUse.has(number), !isInUse, 'told once')
    if (isInUse) inUse.add(number)
    else inUse.delete(number)
  }
  const ids = new RemoteIds(idOf(0), { onResetToken })
  ids.setFirstResetToken(tokenOf(0))
  for (let i = 1; i <= 4; i++) assert.equal(ids.receiveNew(i, 0, idOf(i), tokenOf(i)), undefined)
  return { ids, inUse }
}

test('two paths have an id each, which go with them, and reset tokens count while their ids are used', () => {
  const { ids, inUse } = watched()
  assert.deepEqual([...inUse], [0], 'ids that were never used have tokens that mean nothing')
  assert.equal(ids.isReset(tokenOf(1), 0), false)
  assert.deepEqual(ids.takeBeside(), idOf(1))
  assert.deepEqual(ids.takeBeside(), idOf(1), 'and keeps it')
  assert.deepEqual([...inUse], [0, 1])
  assert.ok(ids.isReset(tokenOf(1), 0))
  ids.swap()
  assert.deepEqual([ids.current, ids.takeBeside()], [idOf(1), idOf(0)])
  ids.dropBeside()
  assert.deepEqual([...inUse], [1])
  assert.deepEqual(written((writer, packet) => ids.maybeWriteFrames(writer, packet)).frames, [[0]])
  ids.swap()
  assert.deepEqual([ids.current, ids.takeBeside()], [idOf(2), idOf(1)])
  assert.equal(ids.receiveNew(9, 4, idOf(9), tokenOf(9)), undefined)
  assert.deepEqual(ids.current, idOf(4), 'both were retired')
  assert.deepEqual(ids.takeBeside(), idOf(9))
  assert.deepEqual([...inUse], [4, 9])
  ids.close()
  assert.equal(inUse.size, 0)
})

test('when all ids but that of the other path are retired, both paths have it', () => {
  const { ids } = watched()
  ids.swap()
  ids.swap()
  assert.deepEqual(ids.takeBeside(), idOf(1))
  assert.equal(ids.receiveNew(1, 1, idOf(1), tokenOf(1)), undefined)
  for (let i = 2; i <= 4; i++) ids.change()
  assert.deepEqual([ids.current, ids.takeBeside()], [idOf(4), idOf(1)])
  assert.equal(ids.change(), false)
  ids.dropBeside()
  assert.deepEqual(ids.takeBeside(), idOf(4))
  ids.swap()
  assert.deepEqual(ids.current, idOf(4))
})

test('a peer without ids has none for any path', () => {
  const ids = new RemoteIds(new Uint8Array(0))
  assert.equal(ids.takeBeside().length, 0)
  ids.swap()
  ids.dropBeside()
  assert.equal(ids.change(), false)
  assert.equal(ids.current.length, 0)
})

test('sequence numbers with gaps between them are not remembered without end', () => {
  const ids = new RemoteIds(idOf(0))
  let fault
  let count = 0
  for (; fault === undefined && count < 1_000; count++) {
    fault = ids.receiveNew(2 * count + 2, 0, idOf(count + 1), tokenOf(0))
    ids.change()
    for (let i = 0; i <= 2 * count + 2; i++) ids.onAcked(i)
  }
  assert.equal(fault?.code, TransportError.connectionIdLimitError)
  assert.ok(count > 50 && count < 80)
})

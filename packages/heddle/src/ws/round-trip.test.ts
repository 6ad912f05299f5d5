import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { test } from 'node:test'
import fc from 'fast-check'
import { allOfDeflate, Rig, type RigOptions } from '../testing/websocket/rig.ts'
import { sample } from '../testing/websocket/case.ts'

/** A message, and the way it is sent. */
interface Sent {
  readonly content: string | Uint8Array
  readonly compress: boolean
  /** Lengths of its parts; undefined: it is sent whole. */
  readonly parts: readonly number[] | undefined
  readonly owned: boolean
}

const sent: fc.Arbitrary<Sent> = fc.record({
  content: fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ maxLength: 300 }).map((text) => text.repeat(5)),
    fc.uint8Array({ maxLength: 300 }),
    fc.constantFrom(0, 1, 125, 126, 4_096, 4_097, 65_535, 65_536, 70_000, 140_000).map(sample),
  ),
  compress: fc.boolean(),
  parts: fc.option(fc.array(fc.nat(100), { minLength: 1, maxLength: 4 }), { nil: undefined }),
  owned: fc.boolean(),
})

const flag = fc.boolean()
const bits = fc.integer({ min: 8, max: 15 })
const setting = fc.record({
  fromServer: flag,
  fragmentSize: fc.constantFrom(Infinity, Infinity, 40, 1_000),
  deflate: fc.option(
    fc.record({ serverNoContextTakeover: flag, clientNoContextTakeover: flag, serverMaxWindowBits: bits, clientMaxWindowBits: bits }),
    { nil: undefined },
  ),
  late: flag,
  native: flag,
  /** Sizes of the pieces of input, used in turn. */
  pieces: fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1_000, max: 100_000 })), { minLength: 1, maxLength: 4 }),
})

function send({ connection }: Rig, { content, compress, parts, owned }: Sent): void {
  if (parts !== undefined) {
    connection.startMessage(typeof content !== 'string', compress)
    let at = 0
    for (const length of parts) {
      connection.sendPart(content.slice(at, at + length), false)
      at += length
    }
    connection.sendPart(content.slice(at), true)
  } else if (typeof content === 'string') connection.sendText(content, compress)
  else {
    const bytes = Uint8Array.from(content)
    connection.sendBytes(bytes, true, compress, owned)
    if (!owned) bytes.fill(0xdb)
  }
}

/** What the other side is told: text as its octets, since a lone surrogate does not arrive as one. */
function arrives(content: string | Uint8Array): string {
  return typeof content === 'string' ? `text ${Buffer.from(content).toString('hex')}` : `binary ${Buffer.from(content).toString('hex')}`
}

test('whatever is sent arrives, in order, however it is cut, compressed and held up', () => {
  fc.assert(
    fc.property(fc.array(sent, { maxLength: 6 }), setting, (messages, { fromServer, fragmentSize, deflate, late, native, pieces }) => {
      const jobs: (() => void)[] = []
      const common: RigOptions = {
        limits: { maxFragments: 200_000 },
        fragmentSize,
        ...(native ? { isUtf8 } : {}),
        ...(deflate === undefined ? {} : { deflate }),
        ...(late ? { schedule: (run) => void jobs.push(run) } : {}),
      }
      const from = new Rig({ ...common, role: fromServer ? 'server' : 'client' })
      const to = new Rig({ ...common, role: fromServer ? 'client' : 'server' })
      const received: string[] = []
      to.program.on.onMessage = (buffer, start, limit, binary) => {
        received.push(`${binary ? 'binary' : 'text'} ${Buffer.from(buffer.subarray(start, limit)).toString('hex')}`)
      }
      let turn = 0
      const move = (): void => {
        const octets = from.tunnel.take()
        for (let at = 0; at < octets.length;) {
          const size = octets.length / 5_000 + (pieces[turn++ % pieces.length] as number)
          const limit = Math.min(octets.length, at + Math.ceil(size))
          to.tunnel.receive(octets.subarray(at, limit))
          at = limit
        }
        from.tunnel.transmit()
      }
      for (const message of messages) {
        send(from, message)
        move()
      }
      from.connection.close(1000)
      for (move(); jobs.length > 0; move()) jobs.shift()?.()
      assert.deepEqual(
        received,
        messages.map(({ content }) => arrives(content)),
      )
      assert.equal(to.program.lines.at(-1), 'peer closes 1000 ""')
      assert.equal(to.tunnel.consumed, to.tunnel.delivered)
      assert.equal(from.connection.bufferedAmount, 0)
      assert.equal(from.connection.messagesSent, from.connection.messagesAccepted)
      assert.deepEqual([...from.faults, ...to.faults], [])
    }),
    { numRuns: 200 },
  )
})

test('octets at random: no throw, no more credit than there was, an end that is told', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 10 }), flag, flag, (inputs, isServer, compresses) => {
      const rig = new Rig({ role: isServer ? 'server' : 'client', ...(compresses ? { deflate: allOfDeflate } : {}) })
      for (const input of inputs) {
        rig.tunnel.receive(input)
        rig.tunnel.transmit()
      }
      rig.tunnel.receiveEnd()
      rig.tunnel.transmit()
      assert.equal(rig.tunnel.closed, true)
      assert.match(rig.told.at(-1) ?? '', /^over /)
      assert.deepEqual(rig.faults, [])
    }),
    { numRuns: 1_000 },
  )
})

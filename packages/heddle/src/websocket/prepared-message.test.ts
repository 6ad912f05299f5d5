import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inflateRawSync } from 'node:zlib'
import { UsageError } from '../http/index.ts'
import { worldTest } from '../testing/index.ts'
import { prepare } from './prepared-message.ts'
import { versions, WebSocketStage } from './stage.test.ts'

const tail = Buffer.from([0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff])

test('it is encoded once, and compressed once for each window that makes a difference', () => {
  const text = 'all of you, '.repeat(500)
  const message = prepare(text)
  assert.equal(message.binary, false)
  assert.equal(Buffer.from(message.payload).toString(), text)
  assert.equal(message.frame.length, 4 + 6_000)
  const forms = new Set([9, 10, 11, 12, 13, 14, 15].map((bits) => message.compressedPayload(bits)))
  assert.equal(forms.size, 5, '9 to 12 have one each, and from 13 on it is the same')
  for (const form of forms) assert.equal(inflateRawSync(Buffer.concat([form as Uint8Array, tail])).toString(), text)
  assert.equal(message.compressedPayload(15), message.compressedPayload(15))
  assert.equal(message.compressedFrame(13), message.compressedFrame(15))
  const form = message.compressedPayload(15) as Uint8Array
  assert.equal(form.byteLength, form.buffer.byteLength, 'it keeps no more memory than its own')
})

test('bytes are copied, and those that do not become smaller stay as they are', () => {
  const bytes = Uint8Array.of(1, 2, 3, 4)
  const message = prepare(bytes)
  bytes.fill(0)
  assert.deepEqual(Uint8Array.from(message.payload), Uint8Array.of(1, 2, 3, 4))
  assert.equal(message.binary, true)
  assert.equal(prepare(bytes, { text: true }).binary, false)
  assert.equal(message.compressedPayload(15), undefined)
  assert.equal(message.compressedFrame(15), undefined)
  assert.throws(() => prepare({} as never), UsageError)
  assert.throws(() => prepare('', { level: 12 }), UsageError)
})

for (const version of versions) {
  worldTest(`${version}: sockets of every setting get it, among messages of their own`, { seeds: 3 }, async (world) => {
    const message = prepare('to all of you, '.repeat(100))
    const settings = [undefined, [true, 15], [false, 15], [true, 9], [false, 10]] as const
    for (const setting of settings) {
      for (const isClient of [false, true]) {
        const stage = new WebSocketStage(world, version)
        const parameters = {
          serverNoContextTakeover: setting?.[0] === true,
          clientNoContextTakeover: setting?.[0] === true,
          serverMaxWindowBits: setting?.[1] ?? 15,
          clientMaxWindowBits: setting?.[1] ?? 15,
        }
        const [client, server] = stage.sockets(setting === undefined ? {} : { deflate: { parameters, threshold: 0 } })
        const [from, to] = isClient ? [client, server] : [server, client]
        const text = Buffer.from(message.payload).toString()
        // What follows may not refer to what came before the prepared message, nor to it.
        const sent = ['own words, '.repeat(50), message, 'own words, '.repeat(50), message, message, 'own words, '.repeat(50)]
        for (const each of sent) from.post(each)
        from.post(message, { compress: false })
        for (const each of sent) assert.equal(await world.complete(to.read()), typeof each === 'string' ? each : text)
        assert.equal(await world.complete(to.read()), text)
        client.close()
        await world.complete(Promise.all([client.closed, server.closed]))
        stage.finish()
      }
    }
  })
}

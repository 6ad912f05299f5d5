/**
 * The load of the WebSocket races over HTTP/1.1: sockets that send a frame prepared before, and count what comes
 * back. Orders on its standard input, each with an answer: `open JSON` connects (see {@link WebSocketLoad}) and sees
 * one message come back as it was; `go MS` keeps messages in flight and answers `done MESSAGES SECONDS FRAMES`; `shut`.
 */
import { createHash, randomBytes } from 'node:crypto'
import net from 'node:net'
import { createInterface } from 'node:readline'
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import type { WebSocketLoad } from '../races/ws-echo.ts'
import { sampleText } from '../sample-text.ts'

/** RFC 7692 §7.2.2 */
const tail = Buffer.of(0, 0, 0xff, 0xff)
let sockets: Echoed[] = []
let deadline = 0
let messages = 0
let frames = 0
let running = 0
let finished: () => void = () => {}

class Echoed {
  readonly #socket: net.Socket
  readonly #load: WebSocketLoad
  readonly #payload: Buffer
  /** As many frames as there are messages in flight. */
  #frames: Buffer
  #frameSize: number
  /** Octets of the frame that is coming, and whether it is a message's last. */
  #left: number
  #ends: boolean
  /** A header in pieces. */
  #header: Buffer
  #inFlight: number

  constructor(socket: net.Socket, load: WebSocketLoad, windowBits: number) {
    this.#socket = socket
    this.#load = load
    this.#payload = Buffer.from(sampleText(load.size))
    const frame = encode(this.#payload, load.deflate ? windowBits : 0)
    this.#frames = Buffer.concat(Array.from({ length: load.inFlight }, () => frame))
    this.#frameSize = frame.length
    this.#left = 0
    this.#ends = false
    this.#header = Buffer.alloc(0)
    this.#inFlight = 0
  }

  /** One message, whose echo has to be the same. */
  async check(): Promise<void> {
    let received = Buffer.alloc(0)
    this.#send(1)
    await new Promise<void>((resolve, reject) => {
      const hear = (chunk: Buffer): void => {
        received = Buffer.concat([received, chunk])
        const header = readHeader(received, 0)
        if (header === undefined || received.length < header.size + header.length) return
        this.#socket.off('data', hear)
        const content = received.subarray(header.size)
        const plain = header.compressed ? inflateRawSync(Buffer.concat([content, tail]), { finishFlush: constants.Z_SYNC_FLUSH }) : content
        if (plain.equals(this.#payload)) resolve()
        else reject(new Error('another message came back'))
      }
      this.#socket.on('data', hear)
    })
    this.#inFlight = 0
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
  }

  start(): void {
    this.#send(this.#load.inFlight)
  }

  end(): void {
    this.#socket.destroy()
  }

  #send(count: number): void {
    this.#inFlight += count
    this.#socket.write(this.#frames.subarray(0, count * this.#frameSize))
  }

  #receive(chunk: Buffer): void {
    const whole = this.#header.length === 0 ? chunk : Buffer.concat([this.#header, chunk])
    this.#header = Buffer.alloc(0)
    let at = 0
    let came = 0
    for (;;) {
      const count = Math.min(this.#left, whole.length - at)
      this.#left -= count
      at += count
      if (this.#left > 0) break
      if (this.#ends) came++
      this.#ends = false
      if (at === whole.length) break
      const header = readHeader(whole, at)
      if (header === undefined) {
        this.#header = whole.subarray(at)
        break
      }
      at += header.size
      this.#left = header.length
      this.#ends = header.fin
      frames++
    }
    this.#inFlight -= came
    messages += came
    if (came === 0) return
    if (performance.now() < deadline) this.#send(came)
    else if (this.#inFlight === 0 && --running === 0) finished()
  }
}

interface Header {
  readonly size: number
  readonly length: number
  readonly fin: boolean
  readonly compressed: boolean
}

/** RFC 6455 §5.2, from a server; undefined: there is more to come of it. */
function readHeader(buffer: Buffer, at: number): Header | undefined {
  const here = buffer.length - at
  if (here < 2) return undefined
  const first = buffer[at] as number
  const second = buffer[at + 1] as number
  const size = second < 126 ? 2 : second === 126 ? 4 : 10
  if (here < size) return undefined
  if ((first & 0x0f) > 2 || second > 127) throw new Error(`a frame that was not expected: ${first} ${second}`)
  const length = size === 2 ? second : size === 4 ? buffer.readUInt16BE(at + 2) : Number(buffer.readBigUInt64BE(at + 2))
  return { size, length, fin: first > 127, compressed: (first & 0x40) !== 0 }
}

/** A masked frame; compressed by itself, so that it can be sent again and again. `windowBits` 0: not compressed. */
function encode(payload: Buffer, windowBits: number): Buffer {
  const content = windowBits === 0 ? payload : deflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH, windowBits }).subarray(0, -4)
  const { length } = content
  const header = Buffer.alloc(length < 126 ? 6 : length < 65_536 ? 8 : 14)
  header[0] = windowBits === 0 ? 0x81 : 0xc1
  header[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (header.length === 8) header.writeUInt16BE(length, 2)
  if (header.length === 14) header.writeBigUInt64BE(BigInt(length), 2)
  const key = Buffer.of(0x37, 0xfa, 0x21, 0x3d)
  key.copy(header, header.length - 4)
  return Buffer.concat([header, content.map((octet, i) => octet ^ (key[i & 3] as number))])
}

async function connect(load: WebSocketLoad): Promise<Echoed> {
  const socket = net.connect({ port: load.port, host: '127.0.0.1', noDelay: true })
  socket.on('error', (error) => {
    throw error
  })
  const key = randomBytes(16).toString('base64')
  const offer = load.deflate ? 'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n' : ''
  socket.write(
    `GET / HTTP/1.1\r\nHost: 127.0.0.1:${load.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n${offer}\r\n`,
  )
  const head = await new Promise<string>((resolve) => {
    let received = ''
    const hear = (chunk: Buffer): void => {
      received += chunk.toString('latin1')
      if (!received.endsWith('\r\n\r\n')) return
      socket.off('data', hear)
      resolve(received)
    }
    socket.on('data', hear)
  })
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const agreed = /sec-websocket-extensions: *permessage-deflate(.*)/i.exec(head)
  if (!head.startsWith('HTTP/1.1 101 ') || !head.includes(accept) || (agreed !== null) !== load.deflate) {
    throw new Error(`another answer was expected:\n${head}`)
  }
  const echoed = new Echoed(socket, load, Number(/client_max_window_bits=(\d+)/.exec(agreed?.[1] ?? '')?.[1] ?? 15))
  await echoed.check()
  return echoed
}

const orders: Readonly<Record<string, (argument: string) => Promise<string>>> = {
  async open(argument) {
    const load = JSON.parse(argument) as WebSocketLoad
    sockets = await Promise.all(Array.from({ length: load.connections }, () => connect(load)))
    return 'opened'
  },
  async go(argument) {
    const started = performance.now()
    deadline = started + Number(argument)
    messages = 0
    frames = 0
    running = sockets.length
    await new Promise<void>((resolve) => {
      finished = resolve
      for (const socket of sockets) socket.start()
    })
    return `done ${messages} ${(performance.now() - started) / 1000} ${frames}`
  },
  async shut() {
    for (const socket of sockets) socket.end()
    sockets = []
    return 'shut'
  },
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const space = line.indexOf(' ')
  const name = space === -1 ? line : line.slice(0, space)
  console.log(await (orders[name] as (argument: string) => Promise<string>)(line.slice(space + 1)))
})
console.log('ready')
process.on('SIGTERM', () => process.exit(0))

/** npm's `@grpc/grpc-js`, as client and as server. */
import { createHash } from 'node:crypto'
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ClientDuplexStream,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js'
import { service, statusDetails, type Call, type Entries, type GrpcClientMaker, type GrpcServerMaker, type Outcome } from './grpc.ts'

const same = (bytes: Buffer): Buffer => bytes

/** A client of `@grpc/grpc-js`. */
export const jsGrpcClient: GrpcClientMaker = (t, secure, port, { authority }) => {
  const how = secure ? credentials.createSsl(Buffer.from(authority)) : credentials.createInsecure()
  const client = new Client(`127.0.0.1:${port}`, how, {
    'grpc.max_receive_message_length': -1,
    'grpc.max_send_message_length': -1,
    ...(secure && { 'grpc.ssl_target_name_override': 'localhost' }),
  })
  t.after(() => client.close())
  return { call: (call) => callJs(client, call), close: () => client.close() }
}

async function callJs(client: Client, call: Call): Promise<Outcome> {
  const { method, messages, metadata = [], timeout, cancelAfter, gzip = false, inTurn = false } = call
  const sent = new Metadata()
  for (const [name, value] of metadata) sent.add(name, name.endsWith('-bin') ? Buffer.from(value) : Buffer.from(value).toString())
  if (gzip) sent.set('grpc-internal-encoding-request', 'gzip')
  const options = timeout === undefined ? {} : { deadline: Date.now() + timeout }
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const replies: Buffer[] = []
  let header: Metadata = new Metadata()
  let open: { cancel(): void; on(event: string, listener: (value: any) => void): unknown }
  const ended = ({ code, details: message, metadata: trailer }: StatusObject): void => {
    const all = entriesOf(trailer)
    resolve({ code, message, details: all['grpc-status-details-bin']?.[0], replies, header: entriesOf(header), trailer: all })
  }
  const told = (_error: ServiceError | null, reply?: Buffer): void => {
    if (reply !== undefined) replies.push(reply)
  }
  const first = Buffer.from(messages[0] ?? [])
  let stream: ClientDuplexStream<Buffer, Buffer> | undefined
  switch (method) {
    case 'Client': {
      const writing = client.makeClientStreamRequest(service + method, same, same, sent, options, told)
      for (const message of messages) writing.write(Buffer.from(message))
      writing.end()
      open = writing
      break
    }
    case 'Both':
      stream = client.makeBidiStreamRequest(service + method, same, same, sent, options)
      open = stream
      break
    case 'Server':
    case 'FailLate':
      open = client.makeServerStreamRequest(service + method, same, same, first, sent, options)
      break
    default:
      open = client.makeUnaryRequest(service + method, same, same, first, sent, options, told)
  }
  open.on('metadata', (received: Metadata) => (header = received))
  open.on('error', () => {})
  // The reply of a call that has just one is told after its status.
  open.on('status', (state: StatusObject) => setImmediate(ended, state))
  let next = 0
  const sendNext = (): void => {
    if (next < messages.length) stream?.write(Buffer.from(messages[next++] as Uint8Array))
    else stream?.end()
  }
  if (method === 'Both' || method === 'Server' || method === 'FailLate') {
    open.on('data', (reply: Buffer) => {
      replies.push(reply)
      if (inTurn) sendNext()
    })
  }
  if (inTurn) sendNext()
  else if (stream !== undefined) while (!stream.writableEnded) sendNext()
  if (cancelAfter !== undefined) setTimeout(() => open.cancel(), cancelAfter)
  return await promise
}

function entriesOf(metadata: Metadata): Entries {
  return Object.fromEntries(Object.keys(metadata.getMap()).map((name) => [name, metadata.get(name).map((value) => Buffer.from(value))]))
}

/** The service on a server of `@grpc/grpc-js`. */
export const jsGrpcServer: GrpcServerMaker = async (t, { identity }) => {
  const server = new Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 })
  server.addService(definition, implementation())
  t.after(() => server.forceShutdown())
  const bind = (how: ServerCredentials): Promise<number> =>
    new Promise((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', how, (error, port) => (error === null ? resolve(port) : reject(error))),
    )
  const pair = { private_key: Buffer.from(identity.key), cert_chain: Buffer.from(identity.cert) }
  return { plain: await bind(ServerCredentials.createInsecure()), secure: await bind(ServerCredentials.createSsl(null, [pair])) }
}

const shapes = { Unary: [false, false], Fail: [false, false], Wait: [false, false], Seen: [false, false], Client: [true, false] } as const
const streaming = { Server: [false, true], FailLate: [false, true], Both: [true, true] } as const
const definition = Object.fromEntries(
  Object.entries({ ...shapes, ...streaming }).map(([name, [requestStream, responseStream]]) => [
    name,
    {
      path: service + name,
      requestStream,
      responseStream,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    },
  ]),
)

interface Implementation {
  [name: string]:
    | handleUnaryCall<Buffer, Buffer>
    | handleClientStreamingCall<Buffer, Buffer>
    | handleServerStreamingCall<Buffer, Buffer>
    | handleBidiStreamingCall<Buffer, Buffer>
  Unary: handleUnaryCall<Buffer, Buffer>
  Fail: handleUnaryCall<Buffer, Buffer>
  Wait: handleUnaryCall<Buffer, Buffer>
  Seen: handleUnaryCall<Buffer, Buffer>
  Client: handleClientStreamingCall<Buffer, Buffer>
  Server: handleServerStreamingCall<Buffer, Buffer>
  FailLate: handleServerStreamingCall<Buffer, Buffer>
  Both: handleBidiStreamingCall<Buffer, Buffer>
}

function failure(request: Buffer): Partial<StatusObject> {
  const [, code, message = ''] = /^(\d+) ([^]*)$/.exec(request.toString()) ?? []
  const metadata = new Metadata()
  metadata.set('grpc-status-details-bin', statusDetails(Number(code), message))
  return { code: Number(code), details: message, metadata }
}

function implementation(): Implementation {
  let cancelled = 0
  return {
    Unary(call, reply) {
      const asked = call.metadata
      const header = new Metadata()
      const trailer = new Metadata()
      for (const value of asked.get('x-asked')) {
        header.add('x-answered', value)
        trailer.add('x-last', value)
      }
      for (const value of asked.get('x-asked-bin')) {
        header.add('x-answered-bin', value)
        trailer.add('x-last-bin', value)
      }
      const deadline = Number(call.getDeadline())
      if (Number.isFinite(deadline)) header.set('x-deadline', `${Math.round(deadline - Date.now())}`)
      call.sendMetadata(header)
      reply(null, call.request, trailer)
    },
    Fail(call, reply) {
      reply(failure(call.request) as ServiceError)
    },
    Wait(call) {
      call.on('cancelled', () => cancelled++)
    },
    Seen(_call, reply) {
      reply(null, Buffer.from(`${cancelled}`))
    },
    Client(call, reply) {
      let count = 0
      let length = 0
      const sum = createHash('sha256')
      call.on('data', (message: Buffer) => {
        count++
        length += message.length
        sum.update(message)
      })
      call.on('end', () => reply(null, Buffer.from(`${count} ${length} ${sum.digest('hex')}`)))
    },
    async Server(call) {
      const [count = 0, size = 0] = call.request.toString().split(' ').map(Number)
      for (let i = 0; i < count; i++) {
        if (!call.write(Buffer.alloc(size, i))) await new Promise((resolve) => call.once('drain', resolve))
      }
      call.end()
    },
    FailLate(call) {
      for (let i = 0; i < 2; i++) call.write(Buffer.from('so far'))
      call.emit('error', Object.assign(new Error('later'), failure(call.request)))
    },
    Both(call) {
      call.pipe(call as never)
    },
  }
}

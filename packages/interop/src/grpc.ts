/** The face that real gRPC clients and servers have here, whoever made them. Messages are octets. */
import type { TestContext } from 'node:test'
import type { Folder } from './stage.ts'

/** A call to make. */
export interface Call {
  readonly method: 'Unary' | 'Fail' | 'Wait' | 'Seen' | 'Server' | 'Client' | 'Both' | 'FailLate'
  readonly messages: readonly Uint8Array[]
  /** Values of names that end with `-bin` are octets. */
  readonly metadata?: readonly (readonly [name: string, value: Uint8Array])[]
  /** The deadline, ms from now. */
  readonly timeout?: number
  /** When it is cancelled, ms from now. */
  readonly cancelAfter?: number
  readonly gzip?: boolean
  /** No message is sent before the answer to the one before has come. */
  readonly inTurn?: boolean
}

/** What came of a call. */
export interface Outcome {
  readonly code: number
  readonly message: string
  /** `grpc-status-details-bin`. */
  readonly details: Buffer | undefined
  readonly replies: readonly Buffer[]
  readonly header: Entries
  readonly trailer: Entries
}

/** Values by name. */
export type Entries = Readonly<Record<string, readonly Buffer[]>>

/** A channel to the service `heddle.Interop`. */
export interface GrpcClient {
  call(call: Call): Promise<Outcome>
  close(): Promise<void> | void
}

/** Connects to `port`, over TLS or not. */
export type GrpcClientMaker = (t: TestContext, secure: boolean, port: number, folder: Folder) => GrpcClient

/** Starts the service: on plain text and on TLS. */
export type GrpcServerMaker = (t: TestContext, folder: Folder) => Promise<{ readonly plain: number; readonly secure: number }>

/** The path of its methods. */
export const service = '/heddle.Interop/'

/** google.rpc.Status with one detail, a google.protobuf.StringValue: what the service fails with. */
export function statusDetails(code: number, message: string): Buffer {
  const field = (number: number, bytes: Uint8Array): Buffer => Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes])
  const value = field(1, Buffer.from('why'))
  const any = Buffer.concat([field(1, Buffer.from('type.googleapis.com/google.protobuf.StringValue')), field(2, value)])
  // What is empty is left out.
  const text = message === '' ? Buffer.alloc(0) : field(2, Buffer.from(message))
  return Buffer.concat([Buffer.from([(1 << 3) | 0, code]), text, field(3, any)])
}

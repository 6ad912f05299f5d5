import { fieldValue, type Fields } from 'heddle/http'

/** `message` with the prefix of gRPC: a flag (not compressed) and its length in four bytes. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = Buffer.alloc(5 + message.length)
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, 5)
  return framed
}

/** `grpc-status` of trailers, or of a head that is all there is; -1 if there is none that is a number. */
export function grpcStatusOf(fields: Fields): number {
  const value = fieldValue(fields, 'grpc-status')
  return value !== undefined && /^\d{1,3}$/.test(value) ? Number(value) : -1
}

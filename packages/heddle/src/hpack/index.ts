/** HPACK (RFC 7541): the field compression of HTTP/2. */
export { Decoder } from './decoder.ts'
export { Encoder } from './encoder.ts'

/** QPACK (RFC 9204): the field compression of HTTP/3. */
export type { SectionHandler } from './blocked.ts'
export { Decoder } from './decoder.ts'
export { Encoder } from './encoder.ts'
export { QpackError, type QpackFault } from './fault.ts'
export { defaultBlockedStreams, defaultTableCapacity, encoderLimits, type DecoderLimits, type EncoderLimits } from './limits.ts'

/** Bytes, lists and timers that know nothing of any protocol. */
export { BufferPool } from './buffer-pool.ts'
export { ByteReader } from './byte-reader.ts'
export { latin1Slice, latin1Write } from './latin1.ts'
export { List, type Linked } from './list.ts'
export { Outbox } from './outbox.ts'
export { RangeSet } from './range-set.ts'
export { TimerWheel, WheelNode } from './timer-wheel.ts'
export { largestVarint, varintSize, writeVarint, writeVarintOfSize } from './varint.ts'

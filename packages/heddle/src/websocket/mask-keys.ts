import { randomFillSync } from 'node:crypto'

/** A call into the random generator costs 1 µs and more, whether for 4 bytes or for 4,096. */
const keys = new Int32Array(1024)
let next = keys.length

/** A mask for one frame of a client: 32 unpredictable bits (RFC 6455 §5.3, §10.3). */
export function randomMaskKey(): number {
  if (next === keys.length) {
    randomFillSync(keys)
    next = 0
  }
  return keys[next++] as number
}

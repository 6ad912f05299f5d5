import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collect: (() => void) | undefined

/** Runs the garbage collector, whether or not Node was started with `--expose-gc`. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  collect()
}

/** Bytes in use by JavaScript after everything that can be collected was: heap and array buffers. */
export async function memoryNow(): Promise<number> {
  // Finalizers and weak references need turns of the event loop between two collections.
  for (let round = 0; round < 4; round++) {
    collectGarbage()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

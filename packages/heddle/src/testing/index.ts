/**
 * A deterministic world to test protocols in: one clock, one seed, links that delay, cut and break,
 * and tools to look at engines from both sides.
 */
export { type WorldEvent } from './events.ts'
export { Link, type LinkOptions } from './link.ts'
export { LinkSocket } from './link-socket.ts'
export { Random } from './random.ts'
export { runSeeds, worldTest, type WorldTestOptions } from './world-test.ts'
export { alarm, World, type RunOptions, type WorldOptions } from './world.ts'

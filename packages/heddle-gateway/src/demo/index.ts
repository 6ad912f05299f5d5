/** The demo: a gateway with an origin to play with. */
export { startDemo, type Demo, type DemoOptions } from './demo.ts'

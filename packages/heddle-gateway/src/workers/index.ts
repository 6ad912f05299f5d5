/** Several processes on the same listeners. */
export { Workers } from './primary.ts'

export * from './types.ts'
export { nodeCrypto } from './node-crypto.ts'

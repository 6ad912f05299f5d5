/** Node's `fetch`, and whatever else takes a dispatcher of undici, over Heddle's client. */
export { dispatcher, type DispatchInterceptor, type HeddleDispatcher } from './dispatcher.ts'
export type { DispatchController, DispatchHandler, DispatchOptions, IncomingFields, LegacyDispatchHandler } from './types.ts'

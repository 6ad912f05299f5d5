/** gRPC, gRPC-Web and Connect calls by Connect-ES over Heddle's client. */
export { universalClient, type UniversalClientFn, type UniversalClientRequest, type UniversalClientResponse } from './universal-client.ts'

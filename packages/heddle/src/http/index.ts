/** The neutral bottom: what a request and its response are in every version. */
export { Budget } from './budget.ts'
export {
  asUnprocessed,
  CancelledError,
  CancelReason,
  errorAbout,
  HeddleError,
  NetworkError,
  PeerError,
  ProtocolError,
  TimeoutError,
  tracedError,
  UsageError,
  wireCodes,
  type ErrorCode,
  type ErrorFacts,
} from './errors.ts'
export type {
  Address,
  Capabilities,
  ConnectionHandler,
  ConnectionInfo,
  Exchange,
  ExchangeHandler,
  HttpConnection,
  Instant,
  OutboxLike,
  StreamEngine,
  TlsFacts,
} from './exchange.ts'
export { tellFault } from './exchange.ts'
export { expectationOf, type Expectation } from './expectation.ts'
export { combinedFieldValue, fieldValue, fieldValues, noFields, withoutField, type Fields } from './fields.ts'
export { badLength, contentLength, declaredLength, heldLength, lengthFault, noLength, parseLength } from './framing.ts'
export { Head, requestHead, responseHead } from './head.ts'
export { isIdempotent, isSafe } from './method.ts'
export { checkLimits, checkOptionNames, type OptionNames } from './option-names.ts'
export { originsPayload, readOrigins } from './origin.ts'
export { defaultPriority, parsePriority, priorityValue, type Priority } from './priority.ts'
export { checkRequest } from './request-check.ts'
export { CodeCounts } from './reset-counts.ts'
export { isBodiless, reasonPhrase } from './status.ts'
export { isAuthority, isFieldName, isFieldValue, isPath, isToken, targetTable, tokenTable, trimBlanks, valueTable } from './validation.ts'
export { grpcStatusNames } from './grpc-status.ts'

/** The access log. */
export { AccessLog, type AccessLogOptions } from './access-log.ts'
export { formatLine } from './line.ts'

import { ProtocolError } from '../http/index.ts'
import { LineCache } from './line-cache.ts'
import type { RequestMessage, ResponseMessage } from './message.ts'
import { RunMemo } from './run-memo.ts'
import type { StartLineSyntax } from './section-reader.ts'
import { readRequestLine, readStatusLine, type RequestLine, type StatusLine } from './start-line.ts'

/** How servers read heads. The caches are the process's: they hold what any connection may know. */
export const requestSyntax: StartLineSyntax<RequestLine, RequestMessage> = {
  read: readRequestLine,
  isCacheable: (line) => line.cacheable,
  // RFC 9112 §3: too long a target is 414.
  tooLong: () => new ProtocolError('request line too long', 414),
  skipsEmptyLines: true,
  cache: new LineCache(256),
  memo: new RunMemo(),
}

/** How clients read heads. */
export const responseSyntax: StartLineSyntax<StatusLine, ResponseMessage> = {
  read: readStatusLine,
  isCacheable: () => true,
  tooLong: () => new ProtocolError('status line too long', 0, 'FIELDS_TOO_LARGE'),
  skipsEmptyLines: false,
  cache: new LineCache(64),
  memo: new RunMemo(),
}

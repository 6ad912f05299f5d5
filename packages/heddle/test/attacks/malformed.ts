/*
 * Messages of which two readers could see different ends, or different fields: how requests are
 * smuggled. Each is to be refused, and nothing that follows it may be handled.
 */
export const host = 'Host: origin.test\r\n'
export const smuggled: string = `GET /smuggled HTTP/1.1\r\n${host}\r\n`

const contentLengths: Record<string, string> = {
  'two different lengths': 'Content-Length: 3\r\nContent-Length: 4\r\n',
  'the same length twice': 'Content-Length: 3\r\nContent-Length: 3\r\n',
  'a list of lengths': 'Content-Length: 3, 3\r\n',
  'a sign': 'Content-Length: +3\r\n',
  'a negative length': 'Content-Length: -3\r\n',
  hexadecimal: 'Content-Length: 0x3\r\n',
  'a fraction': 'Content-Length: 3.0\r\n',
  'an exponent': 'Content-Length: 3e0\r\n',
  'an empty length': 'Content-Length:\r\n',
  'words behind the length': 'Content-Length: 3 bytes\r\n',
  'a length beyond 2^53': 'Content-Length: 99999999999999999999\r\n',
  'a length that wraps 2^64 to 3': 'Content-Length: 18446744073709551619\r\n',
  'a digit that is none in ASCII': 'Content-Length: \xb3\r\n',
}

const codings: Record<string, string> = {
  'length and chunked': 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n',
  'chunked and length': 'Transfer-Encoding: chunked\r\nContent-Length: 3\r\n',
  'length 0 and chunked': 'Content-Length: 0\r\nTransfer-Encoding: chunked\r\n',
  'chunked twice': 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
  'chunked twice in a list': 'Transfer-Encoding: chunked, chunked\r\n',
  'chunked not last': 'Transfer-Encoding: chunked, gzip\r\n',
  'a coding that is not known': 'Transfer-Encoding: gzip, chunked\r\n',
  'a coding without chunked': 'Transfer-Encoding: gzip\r\n',
  identity: 'Transfer-Encoding: identity\r\n',
  'a misspelt coding': 'Transfer-Encoding: xchunked\r\n',
  'a quoted coding': 'Transfer-Encoding: "chunked"\r\n',
  'a coding with a parameter': 'Transfer-Encoding: chunked;x=y\r\n',
  'a vertical tab before the coding': 'Transfer-Encoding: \x0bchunked\r\n',
  'a NUL in the coding': 'Transfer-Encoding: chun\0ked\r\n',
  'an empty coding': 'Transfer-Encoding:\r\n',
}

const lines: Record<string, string> = {
  'a space before the colon': 'Content-Length : 3\r\n',
  'a tab before the colon': 'Transfer-Encoding\t: chunked\r\n',
  'a folded line': 'X-A: b\r\n c\r\n',
  'a folded Transfer-Encoding': 'Transfer-Encoding:\r\n chunked\r\n',
  'a line that begins with a space': ' Content-Length: 3\r\n',
  'no colon': 'Content-Length 3\r\n',
  'an empty name': ': 3\r\n',
  'a bare LF': 'X-A: b\nContent-Length: 3\r\n',
  'a bare CR': 'X-A: b\rContent-Length: 3\r\n',
  'CR CR LF': 'X-A: b\r\r\n',
  'a NUL in a value': 'X-A: b\0c\r\n',
  'a NUL in a name': 'X\0A: b\r\n',
  'an octet above 127 in a name': 'X-\xe9: b\r\n',
  'a second Host': 'Host: other.test\r\n',
  'brackets in a name': 'X[a]: b\r\n',
}

const requestLines: Record<string, string> = {
  'two spaces': `POST  / HTTP/1.1\r\n${host}`,
  'a tab': `POST\t/ HTTP/1.1\r\n${host}`,
  'a space at the end': `POST / HTTP/1.1 \r\n${host}`,
  'no version': `POST /\r\n${host}`,
  'a version of one digit': `POST / HTTP/1\r\n${host}`,
  'version 1.10': `POST / HTTP/1.10\r\n${host}`,
  'a lower-case version': `POST / http/1.1\r\n${host}`,
  'a bare LF behind it': `POST / HTTP/1.1\n${host}`,
  'a NUL in the path': `POST /\0 HTTP/1.1\r\n${host}`,
  'a fragment': `POST /#x HTTP/1.1\r\n${host}`,
  'a path without slash': `POST x HTTP/1.1\r\n${host}`,
  'an octet above 127 in the path': `POST /\xe9 HTTP/1.1\r\n${host}`,
  'no Host': 'POST / HTTP/1.1\r\n',
  'an empty Host': 'POST / HTTP/1.1\r\nHost:\r\n',
  'a Host with user information': 'POST / HTTP/1.1\r\nHost: a@b\r\n',
  'a Host with a path': 'POST / HTTP/1.1\r\nHost: origin.test/x\r\n',
  'a Host with a space': 'POST / HTTP/1.1\r\nHost: origin test\r\n',
  'Transfer-Encoding in HTTP/1.0': `POST / HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n`,
  'HTTP/2.0': `POST / HTTP/2.0\r\n${host}`,
  'HTTP/0.9': 'GET /\r\n',
  'almost the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSN\r\n',
}

const chunked = `POST /chunked HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`
const chunks: Record<string, string> = {
  'no size': '\r\nabc\r\n0\r\n\r\n',
  'a size that is no number': 'g\r\nabc\r\n0\r\n\r\n',
  'a sign in the size': '+3\r\nabc\r\n0\r\n\r\n',
  'a negative size': '-1\r\nabc\r\n0\r\n\r\n',
  'a size with 0x': '0x3\r\nabc\r\n0\r\n\r\n',
  'an underscore in the size': '0_3\r\nabc\r\n0\r\n\r\n',
  'a space before the size': ' 3\r\nabc\r\n0\r\n\r\n',
  'a bare LF behind the size': '3\nabc\r\n0\r\n\r\n',
  'a bare CR behind the size': '3\rabc\r\n0\r\n\r\n',
  'a size beyond 2^53': 'fffffffffffffffff\r\nabc\r\n0\r\n\r\n',
  'a size that wraps 2^64 to 3': '10000000000000003\r\nabc\r\n0\r\n\r\n',
  'a chunk longer than its size': '3\r\nabcd\r\n0\r\n\r\n',
  'no CRLF behind the chunk': '3\r\nabc0\r\n\r\n',
  'a bare LF behind the chunk': '3\r\nabc\n0\r\n\r\n',
  'a bare LF in an extension': '3;a\nb\r\nabc\r\n0\r\n\r\n',
  'a NUL in an extension': '3;a\0\r\nabc\r\n0\r\n\r\n',
  'a bare LF at the end': '3\r\nabc\r\n0\r\n\n',
  'a malformed trailer': '3\r\nabc\r\n0\r\nX : y\r\n\r\n',
  'a folded trailer': '3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n',
}

/** A kind of malformed message: its name, its cases, how a case becomes a message, and the paths a handler may know of. */
export interface MalformedGroup {
  readonly name: string
  readonly cases: Readonly<Record<string, string>>
  readonly message: (part: string) => string
  readonly mayBeAsked: readonly string[]
}

export const malformed: readonly MalformedGroup[] = [
  { name: 'Content-Length', cases: contentLengths, message: (part) => `POST /x HTTP/1.1\r\n${host}${part}\r\nabc`, mayBeAsked: [] },
  {
    name: 'Transfer-Encoding',
    cases: codings,
    message: (part) => `POST /x HTTP/1.1\r\n${host}${part}\r\n3\r\nabc\r\n0\r\n\r\n`,
    mayBeAsked: [],
  },
  { name: 'field lines', cases: lines, message: (part) => `POST /x HTTP/1.1\r\n${host}${part}\r\nabc`, mayBeAsked: [] },
  { name: 'request lines', cases: requestLines, message: (part) => `${part}\r\n`, mayBeAsked: [] },
  // The head was fine, so the handler knows of it; the message is never completed.
  { name: 'chunks', cases: chunks, message: (part) => chunked + part, mayBeAsked: ['/chunked'] },
]

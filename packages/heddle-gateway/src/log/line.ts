import type { RequestRecord } from '../record.ts'

const escapes = Array.from({ length: 256 }, (_, code) => {
  if (code === 0x22) return '\\"'
  if (code === 0x5c) return '\\\\'
  // Bytes are shown as the code point of the same number, escaped: a log stays ASCII whatever clients send.
  return code < 0x20 || code > 0x7e ? `\\u${code.toString(16).padStart(4, '0')}` : String.fromCharCode(code)
})

/**
 * One line of the access log, `\n` included, in ASCII. Durations in ms, sizes in bytes of content.
 * Fields that say nothing (no reason, no upstream) are left out.
 */
export function formatLine(record: RequestRecord): string {
  let line = `{"time":"${isoTime(record.startedAt)}","listener":${known(record.listener)}`
  if (record.route !== '') line += `,"route":${known(record.route)}`
  if (record.cluster !== '') line += `,"cluster":${known(record.cluster)}`
  if (record.endpoint !== '') line += `,"endpoint":${known(record.endpoint)}`
  line += `,"remote":${quote(record.remoteAddress)},"protocol":"${record.protocol}"`
  if (record.upstreamProtocol !== '') line += `,"upstreamProtocol":"${record.upstreamProtocol}"`
  line += `,"method":${quote(record.method)},"authority":${quote(record.authority)},"path":${quote(record.path)},"status":${record.status}`
  if (record.grpcStatus >= 0) line += `,"grpcStatus":${record.grpcStatus}`
  if (record.reason !== '') line += `,"reason":${quote(record.reason)}`
  line += `,"attempts":${record.attempts},"requestSize":${record.requestSize},"responseSize":${record.responseSize}`
  line += `,"duration":${round(record.duration)}`
  if (record.timeToHead >= 0) line += `,"timeToHead":${round(record.timeToHead)}`
  return record.tunnel ? `${line},"tunnel":true}\n` : `${line}}\n`
}

let second = Number.NaN
/** `2026-01-02T03:04:05.` of that second: making it costs more than the rest of a line. */
let secondText = ''

function isoTime(at: number): string {
  const whole = Math.floor(at / 1_000)
  if (whole !== second) {
    second = whole
    secondText = new Date(whole * 1_000).toISOString().slice(0, 20)
  }
  return `${secondText}${String(Math.floor(at) - whole * 1_000).padStart(3, '0')}Z`
}

/** Names of the configuration, quoted: few, and the same in every line. */
const quoted = new Map<string, string>()

function known(text: string): string {
  let result = quoted.get(text)
  if (result === undefined) {
    // Endpoints come and go with their addresses.
    if (quoted.size >= 1_000) quoted.clear()
    result = quote(text)
    quoted.set(text, result)
  }
  return result
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}

/** A latin1 string as a JSON string. */
function quote(text: string): string {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return quoteSlowly(text)
  }
  return `"${text}"`
}

function quoteSlowly(text: string): string {
  let quoted = '"'
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    quoted += escapes[code] ?? `\\u${code.toString(16).padStart(4, '0')}`
  }
  return `${quoted}"`
}

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
  let line = `{"time":"${new Date(record.startedAt).toISOString()}","listener":${quote(record.listener)}`
  if (record.route !== '') line += `,"route":${quote(record.route)}`
  if (record.cluster !== '') line += `,"cluster":${quote(record.cluster)}`
  if (record.endpoint !== '') line += `,"endpoint":${quote(record.endpoint)}`
  line += `,"remote":${quote(record.remoteAddress)},"protocol":"${record.protocol}"`
  if (record.upstreamProtocol !== '') line += `,"upstreamProtocol":"${record.upstreamProtocol}"`
  line += `,"method":${quote(record.method)},"authority":${quote(record.authority)},"path":${quote(record.path)},"status":${record.status}`
  if (record.reason !== '') line += `,"reason":${quote(record.reason)}`
  line += `,"attempts":${record.attempts},"requestSize":${record.requestSize},"responseSize":${record.responseSize}`
  line += `,"duration":${round(record.duration)}`
  if (record.timeToHead >= 0) line += `,"timeToHead":${round(record.timeToHead)}`
  return record.tunnel ? `${line},"tunnel":true}\n` : `${line}}\n`
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

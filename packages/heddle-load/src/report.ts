import { grpcStatusNames } from 'heddle/http'
import type { Progress } from './options.ts'
import type { DurationSummary, LoadResult } from './result.ts'
import { countInWords, durationInWords, rateInWords, shareInWords, sizeInWords } from './units.ts'

/** What a load found, for people. */
export function reportOf(result: LoadResult): string {
  const lines = [heading(result), '']
  lines.push(...requestLines(result), '')
  lines.push(...latencyLines(result))
  const counts = countLines(result)
  if (counts.length > 0) lines.push('', ...counts)
  if (result.kinds.length > 0) lines.push('', ...kindLines(result))
  lines.push('', ...generatorLines(result))
  if (result.thresholds.length > 0) lines.push('', ...thresholdLines(result))
  return `${lines.join('\n')}\n`
}

function heading(result: LoadResult): string {
  const { target, kind, loop, rate, connections, streams, threads, measured, interrupted, gaveUp } = result
  const what = { http: 'HTTP', websocket: 'WebSocket', grpc: 'gRPC' }[kind]
  const pace = loop === 'open' ? `${rateInWords(rate ?? 0)} due per second` : 'closed loop'
  const at = `${countInWords(connections)} connection${connections === 1 ? '' : 's'}${streams > 1 ? ` × ${countInWords(streams)}` : ''}`
  const by = threads > 1 ? `, ${threads} threads` : ''
  const end = gaveUp !== null ? `; given up: ${gaveUp}` : interrupted ? '; stopped before its time' : ''
  return `${what} load on ${target}\n${pace}, ${at}${by}, measured for ${durationInWords(measured)}${end}`
}

function requestLines({ requests, perSecond, bytes, measured, moved }: LoadResult): string[] {
  const { due, succeeded, rejected, failed, unfinished, dropped } = requests
  const errors = due - succeeded
  const parts = (
    [
      [rejected, 'answered with an error'],
      [failed, 'failed'],
      [unfinished, 'unanswered at the end'],
      [dropped, 'never begun'],
    ] as const
  ).flatMap(([count, words]) => (count > 0 ? [`${countInWords(count)} ${words}`] : []))
  const seconds = measured / 1_000
  const perSecondOf = (size: number): string => (seconds > 0 ? ` (${sizeInWords(size / seconds)}/s)` : '')
  const lines = [
    `requests   ${countInWords(due)} due, ${rateInWords(perSecond)} succeeded per second`,
    `errors     ${countInWords(errors)}${due > 0 ? ` (${shareInWords(errors / due)})` : ''}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`,
    `content    ${sizeInWords(bytes.received)} received${perSecondOf(bytes.received)}, ${sizeInWords(bytes.sent)} sent`,
  ]
  if (moved > 0) lines.push(`moved      ${countInWords(moved)} times, to another connection: the server had not acted on the request`)
  return lines
}

const columns = ['p50', 'p90', 'p99', 'p999', 'max', 'mean'] as const

function latencyLines({ loop, latency, service, requests }: LoadResult): string[] {
  const title = (name: string): string => (name === 'p999' ? 'p99.9' : name)
  const row = (name: string, cells: readonly string[]): string =>
    (name.padEnd(11) + cells.map((cell) => cell.padStart(10)).join('')).trimEnd()
  const cells = (summary: DurationSummary): string[] => columns.map((name) => inWords(summary[name]))
  const since = loop === 'open' ? 'was due' : 'was begun'
  const lines = [row('', columns.map(title)), row('latency', cells(latency)), row('service', cells(service))]
  lines.push(`latency is from when a request ${since}, service from when it was given to a connection`)
  if (loop === 'closed') lines.push('a closed loop asks a slow server less; --rate does not')
  if (columns.some((name) => latency[name] === null) && requests.due > 0) {
    lines.push('–: not known, for so many had no answer')
  }
  return lines
}

function inWords(ms: number | null): string {
  return ms === null ? '–' : durationInWords(ms)
}

function countLines({ statuses, grpcStatuses, protocols, errors, unopened, connectionsOpened }: LoadResult): string[] {
  const lines: string[] = []
  const list = (counts: Readonly<Record<string, number>>, name: (key: string) => string = (key) => key): string =>
    Object.entries(counts)
      .map(([key, count]) => `${name(key)} × ${countInWords(count)}`)
      .join(', ')
  if (Object.keys(statuses).length > 0) lines.push(`status     ${list(statuses)}`)
  if (Object.keys(grpcStatuses).length > 0) {
    lines.push(
      `grpc       ${list(grpcStatuses, (key) => (key === '-1' ? 'no grpc-status' : `${key} ${grpcStatusNames[Number(key)] ?? ''}`.trimEnd()))}`,
    )
  }
  const versions: Readonly<Record<string, string>> = { h1: 'HTTP/1.1', h2: 'HTTP/2', h3: 'HTTP/3' }
  const spoken = Object.keys(protocols).length > 0 ? `; answers over ${list(protocols, (key) => versions[key] ?? key)}` : ''
  lines.push(`opened     ${countInWords(connectionsOpened)} connection${connectionsOpened === 1 ? '' : 's'}${spoken}`)
  for (const [code, { count, message }] of Object.entries(errors)) lines.push(`error      ${code} × ${countInWords(count)}: ${message}`)
  for (const [code, { count, message }] of Object.entries(unopened)) lines.push(`unopened   ${code} × ${countInWords(count)}: ${message}`)
  return lines
}

function kindLines({ kinds }: LoadResult): string[] {
  const width = Math.min(40, Math.max(...kinds.map(({ name }) => name.length)))
  return kinds.map(({ name, requests, latency }) => {
    const errors = requests.due - requests.succeeded
    return `${name.padEnd(width)}  ${countInWords(requests.due)} begun, ${countInWords(errors)} errors, p50 ${inWords(latency.p50)}, p99 ${inWords(latency.p99)}`
  })
}

function generatorLines({ generator, loop }: LoadResult): string[] {
  const { cpu, utilization, loopDelay, lateness, limits } = generator
  const late = lateness === null ? '' : `, begins late p50 ${inWords(lateness.p50)} p99 ${inWords(lateness.p99)}`
  const lines = [
    `generator  ${cpu.toFixed(2)} cores, event loop ${shareInWords(utilization)} busy, late p99 ${durationInWords(loopDelay.p99)} max ${durationInWords(loopDelay.max)}${late}`,
  ]
  if (limits.length > 0) {
    lines.push('NOT TO BE TRUSTED: the load generator was itself at its limit')
    for (const limit of limits) lines.push(`  ${limit}`)
    lines.push(`  more --threads${loop === 'open' ? ', a lower --rate' : ''} or another machine may help`)
  }
  return lines
}

function thresholdLines({ thresholds }: LoadResult): string[] {
  return thresholds.map(({ threshold, failed, reason }) => `${failed ? 'FAILED' : 'passed'}     ${threshold}: ${reason}`)
}

/** One line that says how it goes. */
export function progressLine({ phase, elapsed, answered, errors, inFlight, backlog }: Progress, perSecond: number): string {
  const parts = [`${Math.floor(elapsed / 1_000)} s ${phase}`, `${rateInWords(perSecond)}/s`, `${countInWords(answered)} answered`]
  if (errors > 0) parts.push(`${countInWords(errors)} errors`)
  parts.push(`${countInWords(inFlight)} in flight`)
  if (backlog > 0) parts.push(`${countInWords(backlog)} waiting`)
  return parts.join(' · ')
}

import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; --bg: light-dark(#f6f7f9, #14171c); --card: light-dark(#fff, #1c2027); --line: light-dark(#e3e6eb, #2b313b);
  --text: light-dark(#1b1f27, #e6e9ef); --dim: light-dark(#667085, #8b95a7); --accent: light-dark(#3b5bdb, #8da2fb);
  --good: light-dark(#12805c, #4fd1a0); --bad: light-dark(#c0362c, #ff8a80); --warn: light-dark(#9a6700, #f2c14e) }
* { box-sizing: border-box }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1240px; margin: 0 auto; padding: 24px 20px 48px }
header { display: flex; align-items: center; gap: 14px; flex-wrap: wrap; margin-bottom: 20px }
h1 { font-size: 20px; margin: 0; letter-spacing: -.01em }
h2 { font-size: 13px; font-weight: 600; color: var(--dim); margin: 28px 0 8px; text-transform: uppercase; letter-spacing: .06em }
nav { margin-left: auto; display: flex; gap: 14px; flex-wrap: wrap }
a { color: var(--accent); text-decoration: none } a:hover { text-decoration: underline }
.pill { border-radius: 99px; padding: 2px 10px; font-size: 13px; font-weight: 600; border: 1px solid currentColor }
.good { color: var(--good) } .bad { color: var(--bad) } .warn { color: var(--warn) } .dim { color: var(--dim) }
.cards { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 12px }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px }
.card b { display: block; font-size: 24px; font-weight: 650; font-variant-numeric: tabular-nums; letter-spacing: -.02em; white-space: nowrap }
.card span { color: var(--dim); font-size: 13px }
.wide { grid-column: 1 / -1 } svg { display: block; width: 100%; height: 64px }
.box { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: 7px 14px; white-space: pre; border-top: 1px solid var(--line) }
thead th { border-top: 0; color: var(--dim); font-weight: 500; font-size: 13px }
th:first-child, td:first-child { text-align: left }
code { font: 13px ui-monospace, monospace }
@media (max-width: 1079px) { .cards { grid-template-columns: repeat(3, minmax(0, 1fr)) } }
@media (max-width: 560px) { .cards { grid-template-columns: repeat(2, minmax(0, 1fr)) } .card b { font-size: 20px } main { padding: 16px 12px } th, td { padding: 7px 10px } }
`

const script = `
'use strict'
const $ = (id) => document.getElementById(id)
const number = (value) => value >= 1e9 ? (value / 1e9).toFixed(1) + ' G' : value >= 1e6 ? (value / 1e6).toFixed(1) + ' M' : value >= 1e4 ? (value / 1e3).toFixed(1) + ' k' : String(Math.round(value * 10) / 10)
const bytes = (value) => { let unit = 0; while (value >= 1024 && unit < 4) { value /= 1024; unit++ } return (unit ? value.toFixed(1) : value) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit] }
const ms = (value, count) => count === 0 ? '–' : value >= 1000 ? (value / 1000).toFixed(2) + ' s' : value >= 100 ? value.toFixed(0) + ' ms' : value.toFixed(2) + ' ms'
// That a client went away is its own affair.
const own = (part) => Object.entries(part.errors).filter(([reason]) => !reason.startsWith('client_'))
const failures = (part) => own(part).reduce((sum, [, count]) => sum + count, 0)
const reasons = (part) => own(part).map(([reason, count]) => reason + ' ' + number(count)).join(', ')
const statuses = (part) => Object.entries(part.statuses).sort().map(([status, count]) => status + ' ' + number(count)).join('  ')
const codes = (resets) => Object.entries(resets).map(([code, count]) => code + ' ' + number(count)).join('  ')
// Until the head of the response, and until the end of the stream.
const timeHeads = ['latency p50', 'p99', 'stream p50', 'p99']
const times = (part) => [ms(part.latency.p50, part.latency.count), ms(part.latency.p99, part.latency.count), ms(part.duration.p50, part.duration.count), ms(part.duration.p99, part.duration.count)]
function cell(content, className, tag) {
  const element = document.createElement(tag || 'td')
  element.textContent = content
  if (className) element.className = className
  return element
}
function table(id, heads, rows) {
  const head = document.createElement('tr')
  for (const text of heads) head.append(cell(text, '', 'th'))
  const thead = document.createElement('thead')
  thead.append(head)
  const body = document.createElement('tbody')
  for (const row of rows) {
    const line = document.createElement('tr')
    for (const item of row) line.append(Array.isArray(item) ? cell(item[0], item[1]) : cell(item))
    body.append(line)
  }
  const element = document.createElement('table')
  element.append(thead, body)
  $(id).replaceChildren(element)
}
const points = []
let before
function draw() {
  const top = Math.max(1, ...points)
  const path = points.map((value, index) => (index ? 'L' : 'M') + (index * 600 / 119).toFixed(1) + ' ' + (60 - value / top * 54).toFixed(1)).join(' ')
  $('line').setAttribute('d', path)
  $('peak').textContent = 'requests/s, last two minutes, peak ' + number(Math.max(0, ...points))
}
function show(now, ready) {
  const state = $('state')
  state.textContent = ready.status
  state.className = 'pill ' + (ready.status === 'ready' && ready.unusableClusters.length === 0 ? 'good' : ready.status === 'down' ? 'bad' : 'warn')
  state.title = ready.unusableClusters.length > 0 ? 'cannot be used: ' + ready.unusableClusters.join(', ') : ''
  const { requests } = now
  const started = Math.min(...now.processes.map((entry) => entry.startedAt))
  const minutes = Math.floor((now.at - started) / 60000)
  $('about').textContent = now.processes.length + (now.processes.length === 1 ? ' process' : ' processes') + ', up ' + (minutes < 120 ? minutes + ' min' : Math.floor(minutes / 60) + ' h')
  if (before !== undefined && now.at > before.at) {
    points.push(Math.max(0, requests.duration.count - before.requests.duration.count) / (now.at - before.at) * 1000)
    if (points.length > 120) points.shift()
    $('rate').textContent = number(points[points.length - 1])
    draw()
  }
  before = now
  $('total').textContent = number(requests.duration.count)
  $('active').textContent = number(requests.active)
  $('p50').textContent = ms(requests.latency.p50, requests.latency.count)
  $('p99').textContent = ms(requests.latency.p99, requests.latency.count)
  $('failed').textContent = number(failures(requests))
  $('failed').className = failures(requests) > 0 ? 'bad' : ''
  $('failed').title = reasons(requests)
  table('listeners', ['listener', 'connections', 'active', 'waiting', 'requests', 'answers', 'in', 'out', ...timeHeads], now.listeners.map((listener) => [
    listener.name + '  ' + listener.url, number(listener.connections), number(listener.active), number(listener.waiting),
    number(listener.duration.count), statuses(listener), bytes(listener.received), bytes(listener.sent), ...times(listener)]))
  table('routes', ['route', 'requests', 'answers', 'by the gateway', ...timeHeads, 'longest'], now.routes.map((route) => [
    route.name || '(no route)', number(route.duration.count), statuses(route), [reasons(route), failures(route) > 0 ? 'bad' : ''],
    ...times(route), ms(route.duration.max, route.duration.count)]))
  table('clusters', ['cluster / endpoint', 'state', 'active', 'waiting', 'connections', 'attempts', 'failed', 'ejections', ...timeHeads], now.clusters.flatMap((cluster) => [
    [cluster.name, ready.unusableClusters.includes(cluster.name) ? ['unusable', 'bad'] : '', number(cluster.active), number(cluster.waiting), number(cluster.connections), '', '', '', ...times(cluster)],
    ...cluster.endpoints.map((endpoint) => ['   ' + endpoint.name, endpoint.ejected ? ['out', 'bad'] : endpoint.failing ? ['failing', 'bad'] : ['in', 'good'], number(endpoint.active), number(endpoint.waiting), number(endpoint.connections),
      number(endpoint.requests), [number(endpoint.failures), endpoint.failures > 0 ? 'warn' : ''], number(endpoint.ejections), ...times(endpoint)])]))
  const http2 = [...now.listeners.map((listener) => ['clients of ' + listener.name, listener.http2]), ...now.clusters.map((cluster) => ['upstreams of ' + cluster.name, cluster.http2])]
    .filter(([, counts]) => counts.frames > 0)
  $('streams').hidden = http2.length === 0
  table('http2', ['HTTP/2', 'connections', 'open streams', 'frames sent', 'frames per write', 'resets sent', 'resets received'], http2.map(([name, counts]) => [
    name, number(counts.connections), number(counts.streams), number(counts.frames), counts.framesPerWrite.toFixed(1), codes(counts.resetsSent), codes(counts.resetsReceived)]))
  const http3 = [...now.listeners.map((listener) => ['clients of ' + listener.name, listener.http3]), ...now.clusters.map((cluster) => ['upstreams of ' + cluster.name, cluster.http3])]
    .filter(([, counts]) => counts.datagrams > 0 || counts.connections > 0)
  $('datagrams').hidden = http3.length === 0
  table('http3', ['HTTP/3', 'connections', 'open streams', 'datagrams sent', 'datagrams per write', 'resets sent', 'resets received'], http3.map(([name, counts]) => [
    name, number(counts.connections), number(counts.streams), ...(counts.writes > 0 ? [number(counts.datagrams), (counts.datagrams / counts.writes).toFixed(1)] : ['–', '–']), codes(counts.resetsSent), codes(counts.resetsReceived)]))
  const tunnelled = now.routes.filter((route) => route.tunnels.opened > 0)
  $('tunnels').hidden = tunnelled.length === 0
  table('tunnelled', ['tunnels of route', 'open', 'opened', 'closed', 'in', 'out', 'open for p50', 'p99', 'longest'], tunnelled.map(({ name, tunnels }) => [
    name, number(tunnels.open), number(tunnels.opened), number(tunnels.closed), bytes(tunnels.received), bytes(tunnels.sent),
    ms(tunnels.duration.p50, tunnels.duration.count), ms(tunnels.duration.p99, tunnels.duration.count), ms(tunnels.duration.max, tunnels.duration.count)]))
  $('calls').hidden = now.grpc.length === 0
  table('grpc', ['gRPC method', 'route', 'calls', 'status', 'mean'], now.grpc.map((method) => [
    method.service + '/' + method.method, method.route, number(method.calls), statuses(method), ms(method.avg, method.calls)]))
  table('processes', ['process', 'CPU', 'memory'], now.processes.map((entry) => [String(entry.pid), entry.cpu.toFixed(2) + ' s', bytes(entry.memory)]))
}
async function refresh() {
  try {
    const [metrics, ready] = await Promise.all([fetch('/metrics.json'), fetch('/readyz')])
    show(await metrics.json(), await ready.json())
  } catch {
    $('state').textContent = 'not reachable'
    $('state').className = 'pill bad'
  }
  setTimeout(refresh, 1000)
}
refresh()
`

const card = (id: string, label: string): string => `<div class="card"><b id="${id}">–</b><span>${label}</span></div>`
const section = (id: string, title: string): string => `<h2>${title}</h2><div class="box" id="${id}"></div>`

/** The admin page: draws `/metrics.json` once a second. Needs nothing from anywhere else. */
export const adminPage: string = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>heddle-gateway</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<main>
<header><h1>heddle-gateway</h1><span class="pill dim" id="state">…</span><span class="dim" id="about"></span>
<nav><a href="/metrics">metrics</a><a href="/metrics.json">JSON</a><a href="/config">config</a><a href="/readyz">readyz</a></nav></header>
<div class="cards">
${card('rate', 'requests/s')}${card('active', 'under way')}${card('total', 'requests')}${card('p50', 'median latency')}${card('p99', '99th percentile')}${card('failed', 'answered or cut by the gateway')}
<div class="card wide"><svg viewBox="0 0 600 64" preserveAspectRatio="none" aria-hidden="true"><path id="line" fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke" class="good"/></svg><span id="peak"></span></div>
</div>
${section('listeners', 'Listeners')}${section('routes', 'Routes')}${section('clusters', 'Clusters')}<div id="streams" hidden>${section('http2', 'HTTP/2')}</div><div id="datagrams" hidden>${section('http3', 'HTTP/3')}</div><div id="tunnels" hidden>${section('tunnelled', 'Tunnels')}</div><div id="calls" hidden>${section('grpc', 'gRPC')}</div>${section('processes', 'Processes')}
</main>
<script>${script}</script>
`

const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** What the page may do: run its own script, fetch from its own origin, and nothing else. */
export const adminPagePolicy: string = `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

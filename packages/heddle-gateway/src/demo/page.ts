/** What the demo's origin saw of a request. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly host: string
  readonly fields: readonly (readonly [string, string])[]
  readonly peer: string
}

const style = `
:root { color-scheme: light dark; --bg: light-dark(#faf8f5, #16140f); --card: light-dark(#fff, #201d17); --line: light-dark(#e6e0d6, #37322a);
  --text: light-dark(#241f18, #ece6da); --dim: light-dark(#7a7062, #9c9283); --thread: light-dark(#b4562b, #e58f5f) }
* { box-sizing: border-box }
body { margin: 0; background: var(--bg); color: var(--text); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 860px; margin: 0 auto; padding: 40px 20px 64px }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.02em; margin: 0 0 6px }
p { margin: 0 0 14px } .dim { color: var(--dim) } a { color: var(--thread) }
ol { list-style: none; margin: 28px 0; padding: 0; display: grid; grid-template-columns: repeat(3, 1fr); gap: 36px }
li { position: relative; background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px; min-width: 0 }
li:not(:last-child)::after { content: ''; position: absolute; top: 50%; right: -37px; width: 36px; border-top: 2px dashed var(--thread) }
li b { display: block; margin-bottom: 4px } li span { display: block; font-size: 14px; color: var(--dim); overflow-wrap: anywhere }
h2 { font-size: 17px; margin: 32px 0 10px }
.box { background: var(--card); border: 1px solid var(--line); border-radius: 12px; overflow-x: auto; padding: 6px 18px }
table { border-collapse: collapse; width: 100% } td { padding: 7px 18px 7px 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere }
tr:first-child td { border-top: 0 } td:first-child { white-space: nowrap }
code { font: 14px ui-monospace, monospace } .new code { color: var(--thread); font-weight: 600 }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: 8px; padding: 4px 12px; cursor: pointer } button:hover { border-color: var(--thread) }
@media (max-width: 640px) { ol { grid-template-columns: 1fr; gap: 26px } li:not(:last-child)::after { top: auto; right: auto; bottom: -27px; left: 50%; height: 26px; width: 0; border: 0; border-left: 2px dashed var(--thread) } }
`

/** Fields the gateway adds. */
const added = new Set(['via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded'])

/** The demo's page: the way of the request that fetched it. */
export function demoPage(seen: Seen, adminUrl: string): string {
  const value = (name: string): string => seen.fields.find(([field]) => field === name)?.[1] ?? ''
  const client = value('x-forwarded-for')
  const rows = seen.fields.map(
    ([name, text]) =>
      `<tr${added.has(name) ? ' class="new"' : ''}><td><code>${escape(name)}</code></td><td><code>${escape(text)}</code></td></tr>`,
  )
  const gateway =
    client === ''
      ? '<span>None: you asked the origin itself. Try the gateway.</span>'
      : `<span>via ${escape(value('via'))}</span><span>asked as ${escape(value('x-forwarded-proto'))}://${escape(value('x-forwarded-host'))}</span>`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>It goes through</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<main>
<h1>It goes through.</h1>
<p class="dim">This page was made by an origin behind heddle-gateway. Here is the way your request took.</p>
<ol>
<li><b>You</b><span>${escape(client === '' ? seen.peer : client)}</span><span>${escape(shorten(value('user-agent')))}</span></li>
<li><b>Gateway</b>${gateway}</li>
<li><b>Origin</b><span>${escape(seen.method)} ${escape(seen.path)}</span><span>for ${escape(seen.host)}, process ${process.pid}</span></li>
</ol>
<h2>What the origin received</h2>
<p class="dim">In colour: what the gateway added.</p>
<div class="box"><table>${rows.join('')}</table></div>
<h2>Try</h2>
<div class="box"><table>
<tr><td><a href="/headers"><code>/headers</code></a></td><td>the table above as JSON</td></tr>
<tr><td><a href="/stream"><code>/stream</code></a></td><td>ten lines, two a second, as they are made</td></tr>
<tr><td><a href="/slow?ms=1500"><code>/slow?ms=1500</code></a></td><td>an answer that takes its time</td></tr>
<tr><td><code>POST /echo</code></td><td>the content comes back, streamed both ways</td></tr>
<tr><td><button id="stop">Stop the origin</button></td><td>then reload: <code>502</code> with a <code>heddle-reason</code>; it is back after five seconds</td></tr>
</table></div>
<p class="dim" style="margin-top: 24px">How the gateway is doing: <a href="${escape(adminUrl)}/">admin page</a>, <a href="${escape(adminUrl)}/metrics">metrics</a>, <a href="${escape(adminUrl)}/config">configuration</a>.</p>
</main>
<script>document.getElementById('stop').onclick = async (event) => { await fetch('/demo/stop', { method: 'POST' }); event.target.textContent = 'Stopped' }</script>
`
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

import { reasonPhrase } from '../http/index.ts'
import type { UpgradeSocket } from '../node/index.ts'
import type { Refusal } from './agreement.ts'

/** Answers an upgrade with something else than a WebSocket, as programs for Node do: with text. */
export function refuseUpgrade(socket: UpgradeSocket, { status, reason, fields }: Refusal): void {
  const content = reason === '' ? reasonPhrase(status) : reason
  const lines = [`HTTP/1.1 ${status} ${reasonPhrase(status)}`, 'Connection: close', 'Content-Type: text/plain;charset=UTF-8']
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  lines.push(`Content-Length: ${Buffer.byteLength(content)}`, '', content)
  socket.once('finish', () => socket.destroy())
  socket.end(lines.join('\r\n'))
}

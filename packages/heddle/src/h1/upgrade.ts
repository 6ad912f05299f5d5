import { UsageError, type Fields, type Head } from '../http/index.ts'
import { ConnectionToken, listItems } from './field-line.ts'
import type { UpgradePolicy } from './message.ts'
import type { Http1Options } from './options.ts'
import type { FieldSection } from './section.ts'

/** What a server with these options upgrades to. */
export function upgradePolicy(options: Http1Options): UpgradePolicy {
  return {
    protocols: (options.upgrades ?? []).map((name) => name.toLowerCase()),
    websocket: options.websocketAccept !== undefined,
  }
}

/** Client: the key of a WebSocket handshake (RFC 6455 §4.1), or empty for another protocol. */
export function handshakeKey(head: Head, options: Http1Options): string {
  if (head.protocol !== 'websocket') return ''
  // Without the accept function nobody could tell a WebSocket server from one that echoes (RFC 6455 §1.3).
  if (options.websocketKey === undefined || options.websocketAccept === undefined) {
    throw new UsageError('a WebSocket tunnel needs the options websocketKey and websocketAccept')
  }
  return options.websocketKey()
}

/** `fields` without those of the handshake that concern one connection only. */
export function withoutHandshake(fields: Fields, name: 'sec-websocket-key' | 'sec-websocket-accept'): Fields {
  return fields.includes(name) ? fields.filter((_, i) => fields[i - (i % 2)] !== name) : fields
}

/** Client: what is wrong with a 101 to a request for `protocol`, whose handshake had `key`; empty: nothing. */
export function switchProblem(section: FieldSection, protocol: string, key: string, options: Http1Options): string {
  if (protocol === '') return '101 without an Upgrade'
  if (!listItems(section.upgrade).includes(protocol.toLowerCase())) return '101 to another protocol'
  // RFC 6455 §4.1
  if (key !== '' && (section.connection & ConnectionToken.Upgrade) === 0) return '101 whose Connection does not name Upgrade'
  if (key !== '' && section.websocketAccept !== options.websocketAccept?.(key)) return 'wrong or missing Sec-WebSocket-Accept'
  return ''
}

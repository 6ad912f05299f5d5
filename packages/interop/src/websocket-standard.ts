/**
 * One side of a conversation by the standard's `WebSocket` alone: for those of Node, Chromium and heddle. Like the
 * messages it runs in a browser, too.
 */
import { isSame, messageOf } from './websocket-messages.ts'

/** What a side found. */
export interface Conversation {
  /** How many messages came back as they were sent, in order. */
  readonly received: number
  /** What was wrong with the one after these; '' if nothing. */
  readonly fault: string
  readonly protocol: string
  readonly extensions: string
  readonly code: number
  readonly reason: string
  readonly wasClean: boolean
}

/** Who closes when all messages are back. */
export type Closer = 'client' | 'server'

/** What clients offer and servers speak: one is in both. */
export const offered: readonly string[] = ['weave.v9', 'weave.v2', 'weave.v1']
export const spoken: readonly string[] = ['weave.v0', 'weave.v2']

/** How the two sides close. */
export const farewells = {
  client: { code: 4001, reason: 'genug – 足りた 🧵' },
  server: { code: 3999, reason: 'Schluß – 終わり 🪡' },
} as const

/** Where a client asks for a conversation. */
export function target(origin: string, count: number, closer: Closer): string {
  return `${origin}/echo?count=${count}&closer=${closer}`
}

/** Sends the messages before `count`, some of them ahead of their echoes, and closes if that is for the client to do. */
export function converse(
  url: string,
  count: number,
  closer: Closer,
  make: (url: string, protocols: string[]) => StandardWebSocket = (to, protocols) => new WebSocket(to, protocols),
): Promise<Conversation> {
  return new Promise((resolve) => {
    const webSocket = make(url, [...offered])
    webSocket.binaryType = 'arraybuffer'
    let sent = 0
    let received = 0
    let fault = ''
    const pump = (): void => {
      while (sent < count && sent - received < 64 && webSocket.bufferedAmount < 1_000_000) webSocket.send(messageOf(sent++))
    }
    webSocket.onopen = pump
    webSocket.onmessage = ({ data }: { readonly data: unknown }): void => {
      if (!isSame(data instanceof ArrayBuffer ? new Uint8Array(data) : data, messageOf(received))) {
        fault ||= `message ${received} came back as ${typeof data === 'string' ? 'a text' : 'bytes'} that it is not`
        webSocket.close(4400, 'not what was sent')
        return
      }
      received++
      if (received === count && closer === 'client') webSocket.close(farewells.client.code, farewells.client.reason)
      else pump()
    }
    webSocket.onclose = ({ code, reason, wasClean }: Pick<Conversation, 'code' | 'reason' | 'wasClean'>): void => {
      resolve({ received, fault, protocol: webSocket.protocol, extensions: webSocket.extensions, code, reason, wasClean })
    }
  })
}

/** What of the standard's `WebSocket` is used here. */
export interface StandardWebSocket {
  binaryType: string
  readonly bufferedAmount: number
  readonly protocol: string
  readonly extensions: string
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(code: number, reason: string): void
}

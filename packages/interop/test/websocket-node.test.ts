/** Node's own WebSocket and heddle's, by the standard's interface alone, with heddle's server. */
import { test } from 'node:test'
import { WebSocket as HeddleWebSocket } from 'heddle/websocket'
import { converse } from '../src/websocket-standard.ts'
import { clientStory, conversations } from '../src/websocket-stories.ts'

for (const conversation of conversations) {
  const [deflate, closer, count] = conversation
  const name = `${count} messages, deflate ${deflate}, the ${closer} closes`
  // Node's agrees to be sent what is compressed, and compresses nothing.
  test(`Node's WebSocket: ${name}`, { timeout: 60_000 }, (t) => clientStory(t, conversation, false, (url) => converse(url, count, closer)))
  test(`heddle's WebSocket: ${name}`, { timeout: 60_000 }, (t) =>
    clientStory(t, conversation, true, (url) => converse(url, count, closer, (to, protocols) => new HeddleWebSocket(to, protocols))),
  )
}

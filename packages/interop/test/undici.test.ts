/** undici as a client, of HTTP/2 too (`allowH2`, `H2CClient`). It has no server. */
import { undiciClient } from '../src/clients.ts'
import { nodeServer } from '../src/servers.ts'
import { clientStories, gatewayStories } from '../src/stories.ts'

clientStories('undici', undiciClient)
gatewayStories('undici to Node', undiciClient, nodeServer, [
  ['h1', 'h2c'],
  ['h2', 'h2c'],
  ['h2c', 'h1'],
])

/** node:http and node:http2, as clients and as servers. */
import { nodeClient } from '../src/clients.ts'
import { goServer, nodeServer } from '../src/servers.ts'
import { clientStories, gatewayStories, serverStories } from '../src/stories.ts'

clientStories('Node', nodeClient)
serverStories('Node', nodeServer)
gatewayStories('Node to Node', nodeClient, nodeServer, [
  ['h1', 'h2c'],
  ['h2c', 'h1'],
  ['h2', 'h2'],
  ['https', 'h1'],
])
gatewayStories('Node to net/http', nodeClient, goServer, [['h2c', 'h2c']])

/** Go's net/http and golang.org/x/net/http2, as clients and as servers. */
import { goClient } from '../src/clients.ts'
import { goServer, nodeServer } from '../src/servers.ts'
import { clientStories, gatewayStories, serverStories } from '../src/stories.ts'

clientStories('net/http', goClient())
clientStories('golang.org/x/net/http2', goClient(true), ['h2c'])
serverStories('net/http', goServer)
gatewayStories('net/http to net/http', goClient(), goServer, [
  ['h2c', 'h2c'],
  ['h2', 'h2'],
  ['h2', 'h1'],
  ['https', 'h2c'],
])
gatewayStories('net/http to node:http2', goClient(), nodeServer, [['h2', 'h2c']])

/** Go's peers: the program of `go/peer`, as a server, or as a client that is told by lines of JSON what to do. */
import type { TestContext } from 'node:test'
import { Running } from './process.ts'
import type { Folder } from './stage.ts'
import { ToldClient } from './told-client.ts'
import { tool } from './tools.ts'

const peer = tool('peer')

/** Where a server of Go's listens. */
export interface GoServer {
  readonly plain: number
  readonly secure: number
}

/** Starts a server of Go's that ends with its test. */
export async function openGoServer(t: TestContext, kind: string, folder: Folder, ...flags: string[]): Promise<GoServer> {
  const server = new Running(t, peer, [kind, '-cert', folder.cert, '-key', folder.key, ...flags])
  const [, plain, secure] = await server.prints(/^ready (\d+) (\d+)$/m)
  return { plain: Number(plain), secure: Number(secure) }
}

/** A client of Go's that carries orders out, all at the same time. */
export class GoClient<Order extends object, Outcome extends { readonly ID: number }> extends ToldClient<Order, Outcome> {
  constructor(t: TestContext, kind: string, way: string, port: number, folder: Folder) {
    super(t, peer, [kind, '-way', way, '-address', `127.0.0.1:${port}`, '-ca', folder.ca])
  }
}

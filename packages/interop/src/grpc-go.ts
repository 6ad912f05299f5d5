/** Go's `google.golang.org/grpc`, as client and as server. */
import { GoClient, openGoServer } from './go-peer.ts'
import type { Entries, GrpcClientMaker, GrpcServerMaker } from './grpc.ts'

interface GoEntry {
  readonly Name: string
  readonly Value: string
}

interface GoOutcome {
  readonly ID: number
  readonly Code: number
  readonly Message: string
  readonly Details: string | null
  readonly Replies: string[] | null
  readonly Header: GoEntry[] | null
  readonly Trailer: GoEntry[] | null
}

/** A client of grpc-go. */
export const goGrpcClient: GrpcClientMaker = (t, secure, port, folder) => {
  const client = new GoClient<object, GoOutcome>(t, 'grpc-client', secure ? 'h2' : 'h2c', port, folder)
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
  return {
    call: async ({ method, messages, metadata = [], timeout = 0, cancelAfter = 0, gzip = false, inTurn = false }) => {
      const outcome = await client.carryOut({
        Method: method,
        Messages: messages.map(base64),
        Metadata: metadata.map(([name, value]) => ({ Name: name, Value: base64(value) })),
        Timeout: timeout,
        CancelAfter: cancelAfter,
        Gzip: gzip,
        InTurn: inTurn,
      })
      return {
        code: outcome.Code,
        message: outcome.Message,
        details: outcome.Details === null ? undefined : Buffer.from(outcome.Details, 'base64'),
        replies: (outcome.Replies ?? []).map((reply) => Buffer.from(reply ?? '', 'base64')),
        header: goEntries(outcome.Header),
        trailer: goEntries(outcome.Trailer),
      }
    },
    close: () => client.close(),
  }
}

function goEntries(entries: readonly GoEntry[] | null): Entries {
  const all: Record<string, Buffer[]> = {}
  for (const { Name, Value } of entries ?? []) (all[Name] ??= []).push(Buffer.from(Value, 'base64'))
  return all
}

/** The service on a server of grpc-go. */
export const goGrpcServer: GrpcServerMaker = (t, folder) => openGoServer(t, 'grpc-server', folder)

/** The same with `-max-age` or `-min-ping` of `go/peer`. */
export function goGrpcServerWith(...flags: string[]): GrpcServerMaker {
  return (t, folder) => openGoServer(t, 'grpc-server', folder, ...flags)
}

import type { ArrivalKind } from './arrivals.ts'

/** What is spoken with the server. */
export type LoadKind = 'http' | 'websocket' | 'grpc'

/** Which version of HTTP. `auto`: HTTP/1.1 where the scheme is plain (gRPC: HTTP/2), what the server chooses of HTTP/2 and HTTP/1.1 by ALPN with TLS. `h3`: QUIC at once. */
export type LoadProtocol = 'auto' | 'h1' | 'h2' | 'h3'

/** Field lines: an object, with lists for repeated ones, or pairs in their order. */
export type LoadHeaders = Readonly<Record<string, string | readonly string[]>> | readonly (readonly [string, string])[]

/** One request; of several, each is sent as often as its weight says. */
export interface RequestOptions {
  /** How the report calls it. Default: method and path. */
  readonly name?: string | undefined
  /** Absolute, or relative to the `url` of the whole. Default: that one. */
  readonly url?: string | URL | undefined
  /** Default GET; POST for one with content. gRPC: POST. */
  readonly method?: string | undefined
  /** Fields of the request, besides those of the whole. `host` is what it asks for, in place of the URL's host. */
  readonly headers?: LoadHeaders | undefined
  /** Content; of gRPC and WebSocket, the message. Text is sent as UTF-8, over WebSocket as a text message. */
  readonly body?: string | Uint8Array | undefined
  /** Content of so many bytes, in place of `body`. */
  readonly bodySize?: number | undefined
  /** How often, compared with the others. Default 1. */
  readonly weight?: number | undefined
  /** Statuses that are a success: numbers, `2xx`, and lists of them with commas. Default `2xx,3xx`; redirects are not followed. gRPC: 200, and `grpc-status` 0. */
  readonly accept?: string | number | readonly (string | number)[] | undefined
}

/** TLS towards the server. PEM texts. */
export interface LoadTlsOptions {
  /** Authorities to trust in place of Node's. */
  readonly ca?: string | undefined
  /** Our certificate, and its key. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** SNI, and whom the certificate has to be for. Default: the URL's host. */
  readonly servername?: string | undefined
  /** False: any certificate will do. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
}

/** What load to make, of what, and for how long. Times in ms, sizes in bytes. */
export interface LoadOptions extends RequestOptions {
  /** Several requests, chosen by their weights, in place of one. HTTP and gRPC only. */
  readonly requests?: readonly RequestOptions[] | undefined
  /** Default: `websocket` for ws: and wss: URLs, else `http`. */
  readonly kind?: LoadKind | undefined
  /** Default `auto`. */
  readonly protocol?: LoadProtocol | undefined
  /** Connections; with several origins, to each. Default 10. */
  readonly connections?: number | undefined
  /** Requests at once on each connection, over HTTP/2 and HTTP/3; of WebSocket over these, the sockets on each. Default 1. */
  readonly streams?: number | undefined
  /** WebSocket: messages at once on each socket. Default 1. */
  readonly inFlight?: number | undefined
  /**
   * Requests per second that are due, whatever became of those before: an open loop. Without it the loop is closed: each
   * request is begun when the one before has ended, so a server that is slow is asked less.
   */
  readonly rate?: number | undefined
  /** Of an open loop. Default `poisson`. */
  readonly arrivals?: ArrivalKind | undefined
  /** What everything that chance decides follows from: arrivals, and which request is next. Default 1. */
  readonly seed?: number | undefined
  /**
   * How an open loop waits for what is due next. `spin` (the default): the last 2 ms busily, so that requests are begun within
   * microseconds; keeps a core busy. `timer`: up to 2 ms late.
   */
  readonly pacing?: 'spin' | 'timer' | undefined
  /** Of an open loop: requests that are due and may wait for a connection; more are not begun, and counted as that. Default: ten seconds' worth, at least 1,000. */
  readonly maxBacklog?: number | undefined
  /** How long to measure. Default 10 s, or, with `count`, for as long as that takes. */
  readonly duration?: number | undefined
  /** How many requests to measure. Default: no limit but `duration`. */
  readonly count?: number | undefined
  /** The same load before anything is measured. Default 0. */
  readonly warmup?: number | undefined
  /** How long those that are due at the end of `duration` may take to end. Default 5 s. */
  readonly grace?: number | undefined
  /** From the beginning of a request to the end of its answer; then it is cancelled, and an error. Default 30 s. */
  readonly timeout?: number | undefined
  /** Default 10 s. */
  readonly connectTimeout?: number | undefined
  readonly tls?: LoadTlsOptions | undefined
  /** All connections go to this Unix socket (or Windows pipe). */
  readonly socketPath?: string | undefined
  /** Threads that share connections and rate, each with an event loop of its own. Default 1: the calling thread. */
  readonly threads?: number | undefined
  /** WebSocket: what the answer to a message has to be: the `same` (the default), or `any` message. */
  readonly echo?: 'same' | 'any' | undefined
  /** WebSocket: offer permessage-deflate. Default false. */
  readonly deflate?: boolean | undefined
  /** What must not be: `p99>20ms`, `errors>0.1%`, `rps<5000`; see {@link parseThreshold}. The result says which of them are. */
  readonly failIf?: readonly string[] | undefined
  /** Its abort ends the load as the end of `duration` does; the promise is fulfilled with what there is. */
  readonly signal?: AbortSignal | undefined
  /** Told twice a second how it goes. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** How a load goes. */
export interface Progress {
  readonly phase: 'warm-up' | 'measuring' | 'ending'
  /** ms since it began. */
  readonly elapsed: number
  /** Answers and errors so far, the warm-up included. */
  readonly answered: number
  readonly errors: number
  /** Requests under way, and due ones that wait. */
  readonly inFlight: number
  readonly backlog: number
}

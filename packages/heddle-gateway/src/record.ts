/** A gRPC call, as its path names it: `/package.Service/Method`. */
export interface GrpcCall {
  /** `package.Service`; empty if the path has one part only. */
  readonly service: string
  readonly method: string
}

/** One finished request, told once to metrics and access log. Durations in ms, sizes in bytes of content. */
export interface RequestRecord {
  /** ms since 1970 at the request's head. */
  startedAt: number
  /** Name of the listener. */
  listener: string
  /** Empty: no route matched. */
  route: string
  /** Name of the route's cluster, or empty. */
  cluster: string
  /** `host:port` of the last endpoint tried, or empty. */
  endpoint: string
  /** The peer's IP address; not what a trusted peer says of its client. */
  remoteAddress: string
  protocol: 'h1' | 'h2' | 'h3'
  /** Empty: no connection was had. */
  upstreamProtocol: '' | 'h1' | 'h2' | 'h3'
  method: string
  authority: string
  path: string
  /** Sent to the client; 0 when it went away before a head was sent. */
  status: number
  /** Why the gateway itself answered or cut: empty, or the machine-readable reason also sent as `heddle-reason`. */
  reason: string
  /** Made upstream, the first included. */
  attempts: number
  /** Content the client sent. */
  requestSize: number
  /** Content sent to the client. */
  responseSize: number
  /** Request head → end of the exchange. */
  duration: number
  /** Request head → response head from upstream; -1 if none came. */
  timeToHead: number
  /** The last attempt, the wait for its connection included → its response head; -1 if none came. */
  upstreamLatency: number
  /** The last attempt, the wait for its connection included → end of the exchange; -1 if there was no attempt. */
  upstreamDuration: number
  /** True for an upgrade or CONNECT that became a tunnel. */
  tunnel: boolean
  /** Undefined: the request is none of gRPC. */
  grpc: GrpcCall | undefined
  /** How the call ended: the upstream's `grpc-status`, or what the client makes of what it got instead; -1: no gRPC. */
  grpcStatus: number
}

/** Told by the proxy path; implemented by metrics and access log. */
export interface ProxyObserver {
  /** The head of a request has come. */
  onRequestStart(listener: string): void
  /** It became a tunnel; what of `record` concerns its end is still to come. Absent: nobody wants to know. */
  onTunnelStart?(record: RequestRecord): void
  /** It is over, however it ended; once for each start. `record` may be kept. */
  onRequestEnd(record: RequestRecord): void
}

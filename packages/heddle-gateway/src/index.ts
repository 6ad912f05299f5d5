/**
 * A reverse proxy on heddle, as a library: load or make a configuration, start it, look at it, stop
 * it. The program is `heddle-gateway`.
 */
export {
  loadConfig,
  parseConfig,
  ConfigError,
  ReloadError,
  formatProblem,
  type ConfigProblem,
  type LoadOptions,
  type ParseOptions,
} from './config/index.ts'
export type {
  AccessLogConfig,
  AdminConfig,
  ClusterConfig,
  ClusterHttp2Config,
  ClusterHttp3Config,
  ClusterTlsConfig,
  Config,
  EjectionConfig,
  EndpointConfig,
  Http2Config,
  HttpVersion,
  ListenerConfig,
  ListenerHttp2Config,
  ListenerHttp3Config,
  ListenerLimits,
  MatchConfig,
  RetryConfig,
  RouteConfig,
  TlsConfig,
  UpstreamProtocol,
} from './config/index.ts'
export { startGateway, type Gateway, type GatewayOptions } from './gateway.ts'
export { ListenError } from './listen-error.ts'
export type { ListeningAddress } from './service.ts'
export type { Readiness } from './admin/index.ts'
export type { ClusterStats, EndpointStats } from './upstream/index.ts'
export type {
  AccessLogStats,
  ClusterSummary,
  DurationSummary,
  GrpcSummary,
  Http2Summary,
  ListenerSnapshot,
  ProcessSnapshot,
  RequestSummary,
  Snapshot,
  Summary,
  TunnelSummary,
} from './metrics/index.ts'
export type { Http2Counts } from './http2-counts.ts'
export type { DatagramCounts, Http3Counts } from './http3-counts.ts'
export { Http3Error } from './http3-error.ts'
export type { GrpcCall, ProxyObserver, RequestRecord } from './record.ts'

/** The configuration: types, YAML, checks. */
export { loadConfig, parseConfig, type LoadOptions, type ParseOptions } from './load.ts'
export { reloaded, ReloadError } from './reload.ts'
export { ConfigError, formatProblem, type ConfigProblem } from './problem.ts'
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
} from './types.ts'

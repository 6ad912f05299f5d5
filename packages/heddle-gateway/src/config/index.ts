/** The configuration: types, YAML, checks. */
export { loadConfig, parseConfig, type LoadOptions, type ParseOptions } from './load.ts'
export { ConfigError, formatProblem, type ConfigProblem } from './problem.ts'
export type {
  AccessLogConfig,
  AdminConfig,
  ClusterConfig,
  ClusterTlsConfig,
  Config,
  EjectionConfig,
  EndpointConfig,
  ListenerConfig,
  ListenerLimits,
  MatchConfig,
  RetryConfig,
  RouteConfig,
  TlsConfig,
} from './types.ts'

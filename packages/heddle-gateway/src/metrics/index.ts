/** Counting requests, and showing the counts. */
export { prometheusType, renderPrometheus } from './prometheus.ts'
export { familiesOf } from './state.ts'
export {
  mergeSnapshots,
  pastOf,
  processSnapshot,
  withPast,
  type AccessLogStats,
  type ListenerSnapshot,
  type ProcessSnapshot,
  type Snapshot,
} from './snapshot.ts'
export {
  summarize,
  type ClusterSummary,
  type DurationSummary,
  type GrpcSummary,
  type Http2Summary,
  type RequestSummary,
  type Summary,
  type TunnelSummary,
} from './summary.ts'
export { Traffic, type TrafficSnapshot } from './traffic.ts'

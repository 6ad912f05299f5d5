/**
 * A load generator on heddle, as a library: say what load to make, and read what it found. The program
 * is `heddle-load`.
 */
export { run } from './run.ts'
export type { LoadHeaders, LoadKind, LoadOptions, LoadProtocol, LoadTlsOptions, Progress, RequestOptions } from './options.ts'
export type { ArrivalKind } from './arrivals.ts'
export type { DurationSummary, GeneratorResult, KindResult, LoadResult, RequestCounts } from './result.ts'
export type { Failure } from './tally.ts'
export { reportOf } from './report.ts'
export { parseThreshold, type Threshold, type ThresholdResult } from './threshold.ts'
export { loadScenario, ScenarioError, type Scenario } from './scenario.ts'

import type { Snapshot } from '../metrics/index.ts'

/** The document of `/readyz`. */
export interface Readiness {
  /** `draining` and `down` are answered with 503. */
  readonly status: 'ready' | 'draining' | 'down'
  /** Clusters of which every endpoint is failing (see `EndpointStats.failing`): `consecutiveFailures` in a row, ejected or not. */
  readonly unusableClusters: readonly string[]
}

/**
 * Whether to send requests here. One cluster that is down does not take the gateway out of service:
 * its routes answer with a reason, the others work, and every other gateway would say the same.
 * Only when no cluster at all can be used is it `down`.
 */
export function readinessOf(snapshot: Snapshot, phase: 'running' | 'draining'): Readiness {
  const unusableClusters = snapshot.clusters
    .filter((cluster) => cluster.endpoints.every((endpoint) => endpoint.failing))
    .map((cluster) => cluster.name)
  if (phase === 'draining') return { status: 'draining', unusableClusters }
  const down = snapshot.clusters.length > 0 && unusableClusters.length === snapshot.clusters.length
  return { status: down ? 'down' : 'ready', unusableClusters }
}

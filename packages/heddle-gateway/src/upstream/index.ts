/** Clusters: which endpoints there are, how they are doing, and which one is next. */
export { Cluster, hostPort, type ClusterOptions, type ClusterStats } from './cluster.ts'
export type { Endpoint, EndpointStats } from './endpoint.ts'
export type { NameLookup } from './names.ts'

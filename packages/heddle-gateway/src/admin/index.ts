/** The admin server: what is going on, for people and for programs. */
export { serveAdmin, type AdminSource } from './admin.ts'
export { readinessOf, type Readiness } from './readiness.ts'

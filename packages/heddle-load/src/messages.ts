import type { Progress } from './options.ts'
import type { ThreadRecord } from './thread-run.ts'

/** What a thread is told. */
export type Order = 'go' | 'stop'

/** What a thread tells. */
export type Report =
  | { readonly type: 'ready' }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'done'; readonly record: ThreadRecord }

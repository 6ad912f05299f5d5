/** What `waitDeadline` of a client's connection waits for. */
export const Waiting = { None: 0, Idle: 1, Continue: 2, Response: 3 } as const
export type Waiting = (typeof Waiting)[keyof typeof Waiting]

/** What the owner of a client's connection has to be told about drained content. */
export const DrainNotice = { None: 0, Completed: 1, GivenUp: 2 } as const
export type DrainNotice = (typeof DrainNotice)[keyof typeof DrainNotice]

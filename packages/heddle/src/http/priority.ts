/** RFC 9218 §4: urgency 0 (first) to 7 (last), default 3; incremental content may be interleaved. */
export interface Priority {
  readonly urgency: number
  readonly incremental: boolean
}

/** RFC 9218 §4: what applies when nothing was said. */
export const defaultPriority: Priority = Object.freeze({ urgency: 3, incremental: false })

/** What was parsed before: clients say a handful of things, and each with every request. */
const known = new Map<string, Priority>()
const mostKnown = 64

/**
 * Reads the value of a `priority` field or PRIORITY_UPDATE frame (RFC 9218 §4): a structured-field
 * dictionary of which `u` and `i` count; what is malformed or unknown is ignored (RFC 9218 §4).
 */
export function parsePriority(value: string): Priority {
  let priority = known.get(value)
  if (priority !== undefined) return priority
  priority = Object.freeze(parse(value))
  if (known.size < mostKnown && value.length < 64) known.set(value, priority)
  return priority
}

function parse(value: string): Priority {
  let { urgency, incremental } = defaultPriority
  for (const member of value.split(',')) {
    const text = member.trim().split(';', 1)[0] as string
    if (/^u=[0-7]$/.test(text)) urgency = Number(text[2])
    else if (text === 'i' || text === 'i=?1') incremental = true
    else if (text === 'i=?0') incremental = false
  }
  return { urgency, incremental }
}

/** `priority` as the value of a PRIORITY_UPDATE frame or `priority` field (RFC 9218 §4). */
export function priorityValue({ urgency, incremental }: Priority): string {
  return `u=${urgency}${incremental ? ', i' : ''}`
}

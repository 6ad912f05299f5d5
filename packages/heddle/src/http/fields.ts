/**
 * Field lines as one flat array `[name, value, name, value, …]`, in the order they were received.
 * Names are lower case, values are latin1 (one code unit per octet) without surrounding white space.
 * Pseudo-header fields and the connection-specific fields of HTTP/1.1 (RFC 9110 §7.6.1) are never
 * in it: a proxy can hand the same array on. Treat an array you did not make as immutable; engines
 * share arrays between messages.
 */
export type Fields = readonly string[]

/** The array to give where there are no fields. */
export const noFields: Fields = Object.freeze([])

/** The first value of `name` (lower case), or undefined. */
export function fieldValue(fields: Fields, name: string): string | undefined {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return fields[i + 1]
  return undefined
}

/** All values of `name` (lower case), in order. */
export function fieldValues(fields: Fields, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) values.push(fields[i + 1] as string)
  return values
}

/** All values of `name` joined with ", " (RFC 9110 §5.3); not for `set-cookie`. Undefined if there is none. */
export function combinedFieldValue(fields: Fields, name: string): string | undefined {
  let combined: string | undefined
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== name) continue
    combined = combined === undefined ? (fields[i + 1] as string) : `${combined}, ${fields[i + 1] as string}`
  }
  return combined
}

/** A copy of `fields` without `name` (lower case). */
export function withoutField(fields: Fields, name: string): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) if (fields[i] !== name) kept.push(fields[i] as string, fields[i + 1] as string)
  return kept
}

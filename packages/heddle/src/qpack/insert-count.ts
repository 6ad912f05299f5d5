/** Entries that fit into a table of `maxTableCapacity` octets: none is smaller than 32 (RFC 9204 §4.5.1.1). */
export function maxEntries(maxTableCapacity: number): number {
  return Math.floor(maxTableCapacity / 32)
}

/** A Required Insert Count as it stands in a section's prefix: modulo twice the entries there may be (RFC 9204 §4.5.1.1). */
export function encodeInsertCount(required: number, entries: number): number {
  return required === 0 ? 0 : (required % (2 * entries)) + 1
}

/** The Required Insert Count that `encoded` stands for when `inserted` entries have come; -1: no encoder can have written it. */
export function decodeInsertCount(encoded: number, entries: number, inserted: number): number {
  if (encoded === 0) return 0
  const fullRange = 2 * entries
  if (encoded > fullRange) return -1
  const most = inserted + entries
  const required = Math.floor(most / fullRange) * fullRange + encoded - 1
  if (required <= most) return required === 0 ? -1 : required
  return required <= fullRange ? -1 : required - fullRange
}

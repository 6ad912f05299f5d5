const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const sizeUnits: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
}

/** `250ms`, `10s`, `1.5m`, `2h` → ms. Undefined for anything else; a unit is always needed, so nobody has to guess it. */
export function parseDuration(text: string): number | undefined {
  return parseQuantity(text, durationUnits)
}

/** ms as they are written: `30s`, `250ms`. */
export function durationInWords(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`
}

/** `512B`, `64KiB`, `10MB` → bytes. Undefined for anything else. */
export function parseSize(text: string): number | undefined {
  return parseQuantity(text, sizeUnits)
}

function parseQuantity(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]+)$/.exec(text)
  if (match === null) return undefined
  const unit = Object.hasOwn(units, match[2] as string) ? units[match[2] as string] : undefined
  if (unit === undefined) return undefined
  const quantity = Math.round(Number(match[1]) * unit)
  return Number.isSafeInteger(quantity) ? quantity : undefined
}

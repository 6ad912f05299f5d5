const durationUnits: Readonly<Record<string, number>> = { us: 0.001, µs: 0.001, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
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

/** `500us`, `250ms`, `10s`, `1.5m`, `2h` → ms. Undefined for anything else; a unit is always needed, so nobody has to guess it. */
export function parseDuration(text: string): number | undefined {
  return parseQuantity(text, durationUnits)
}

/** `512B`, `64KiB`, `10MB` → bytes. Undefined for anything else. */
export function parseSize(text: string): number | undefined {
  const size = parseQuantity(text, sizeUnits)
  return size === undefined ? undefined : Math.round(size)
}

function parseQuantity(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-zµ]+)$/.exec(text)
  if (match === null) return undefined
  const unit = Object.hasOwn(units, match[2] as string) ? units[match[2] as string] : undefined
  if (unit === undefined) return undefined
  const quantity = Number(match[1]) * unit
  return quantity <= Number.MAX_SAFE_INTEGER ? quantity : undefined
}

/** ms for people: `85 µs`, `1.25 ms`, `12.3 ms`, `4.56 s`. */
export function durationInWords(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1_000)} µs`
  if (ms < 999.5) return `${threeDigits(ms)} ms`
  return `${threeDigits(ms / 1_000)} s`
}

/** Bytes for people: `512 B`, `1.5 MiB`. */
export function sizeInWords(bytes: number): string {
  if (bytes < 1_024) return `${Math.round(bytes)} B`
  const names = ['KiB', 'MiB', 'GiB', 'TiB']
  let size = bytes / 1_024
  let step = 0
  while (size >= 999.5 && step < names.length - 1) {
    size /= 1_024
    step++
  }
  return `${threeDigits(size)} ${names[step]}`
}

/** `1234567.8` → `1,234,568`. */
export function countInWords(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}

/** A rate for people: whole numbers where they are large, else three digits. */
export function rateInWords(perSecond: number): string {
  return perSecond >= 100 ? countInWords(perSecond) : threeDigits(perSecond)
}

/** A share, 0 to 1: `12.3%`, `0.004%`. */
export function shareInWords(share: number): string {
  return `${share === 0 ? 0 : Number((share * 100).toPrecision(share < 0.1 ? 2 : 3))}%`
}

function threeDigits(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}

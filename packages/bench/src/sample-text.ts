/** JSON as programs send it, `length` characters of ASCII; it compresses to a third or so when it is long. */
export function sampleText(length: number): string {
  let seed = 1
  let text = ''
  const next = (most: number): number => {
    // The multiplier of Park and Miller: the same text every time.
    seed = (seed * 48_271) % 2_147_483_647
    return seed % most
  }
  while (text.length < length) {
    text += `{"id":${next(1_000_000)},"user":"u${next(10_000).toString(36)}","price":${next(100_000) / 100},"tags":["t${next(50)}","t${next(50)}"]},`
  }
  return text.slice(0, length)
}

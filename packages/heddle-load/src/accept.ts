/** Which statuses are a success: 1 at their index. Undefined where `given` has something that is none. */
export function acceptedStatuses(given: string | number | readonly (string | number)[]): Uint8Array | undefined {
  const accepted = new Uint8Array(600)
  const words = (Array.isArray(given) ? given : [given]).flatMap((item: string | number) => String(item).split(','))
  for (const word of words.map((part) => part.trim())) {
    if (/^[1-5]xx$/i.test(word)) accepted.fill(1, Number(word[0]) * 100, Number(word[0]) * 100 + 100)
    else if (/^[1-5]\d\d$/.test(word)) accepted[Number(word)] = 1
    else return undefined
  }
  return accepted
}

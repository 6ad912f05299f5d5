// Hears 103 (Early Hints) before the answer, and the trailers behind it: `node client-hints.ts URL`.
import { fetch } from 'heddle'

const response = await fetch(process.argv[2] as string, {
  onInformational: ({ status, headers }) => console.log(status, headers.get('link')),
})
console.log(response.status, (await response.text()).length, 'bytes')
console.log('sum:', (await response.trailers).get('x-sum'))

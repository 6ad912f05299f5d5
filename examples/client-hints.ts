// Hears 103 (Early Hints) before the answer, and the trailers behind it: `npm run example -- client-hints [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-upload listens.
import { fetch } from 'heddle'

const response = await fetch(process.argv[2] ?? 'http://localhost:8080/', {
  method: 'POST',
  body: 'hello',
  onInformational: ({ status, headers }) => console.log(status, headers.get('link')),
})
console.log(response.status, (await response.text()).length, 'bytes')
console.log('digest:', (await response.trailers).get('x-digest'))

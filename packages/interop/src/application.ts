/** The small application that the stories are about: on heddle's server here, on other servers by other means, with the same paths. */
import { createHash } from 'node:crypto'
import { Response, type FetchHandler } from 'heddle'

/** What `/big` and `/stream` are answered with. */
export const content: Buffer<ArrayBuffer> = Buffer.alloc(2_000_000, 'abcdefghijk')

/** How much of an answer `/break` sends. */
export const brokenAfter = 100_000

/** SHA-256 in hex. */
export function sumOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/**
 * - `/hello`: method and version. Content is not read.
 * - `/big`, `/stream`: {@link content}, with and without a length.
 * - `/sum`: the sum of the request's content.
 * - `/echo`: content goes back as it comes.
 * - `/fields`: `x-asked` fields come back as `x-answered`, cookies as content.
 * - `/trailers`: `x-sum: 42`, and `x-got` with the request's trailer `x-sent`.
 * - `/hints`: a 103 with a link before the answer.
 * - `/break`: breaks off in the middle.
 * - `/wait`: never answers; `/cancelled` tells how many of those were given up.
 */
export function application(): FetchHandler {
  let cancelled = 0
  return async (request, context) => {
    const { pathname } = new URL(request.url)
    switch (pathname) {
      case '/big':
        return new Response(content)
      case '/stream':
        return new Response(new Blob([content]).stream())
      case '/sum':
        return new Response(sumOf(await request.bytes()))
      case '/echo':
        return new Response(request.body)
      case '/fields': {
        const answered = (request.headers.get('x-asked') ?? '').split(', ').map((value): [string, string] => ['x-answered', value])
        return new Response(request.headers.get('cookie'), { headers: answered })
      }
      case '/trailers': {
        await request.bytes()
        const got = (await request.trailers).get('x-sent')
        return new Response('summed', { trailers: { 'x-sum': '42', ...(got !== null && { 'x-got': got }) } })
      }
      case '/hints':
        context.sendInformational(103, { link: '</a.css>; rel=preload' })
        return new Response('hinted')
      case '/break':
        return new Response(broken())
      case '/wait':
        return await new Promise((_, reject) => {
          request.signal.addEventListener('abort', () => {
            cancelled++
            reject(request.signal.reason)
          })
        })
      case '/cancelled':
        return new Response(`${cancelled}`)
      default:
        return new Response(`${request.method} ${context.protocol}`)
    }
  }
}

async function* broken(): AsyncGenerator<Uint8Array> {
  yield content.subarray(0, brokenAfter)
  // What is underway when the stream fails may be thrown away.
  await new Promise((resolve) => setTimeout(resolve, 100))
  throw new BrokenOff()
}

/** What `/break` fails with. */
export class BrokenOff extends Error {}

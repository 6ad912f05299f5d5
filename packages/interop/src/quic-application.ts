/** What the tests of HTTP/3 ask for beside the application of all stories; the peers' servers have it, too. */
import { Response, type FetchHandler } from 'heddle'
import { application, content } from './application.ts'

/**
 * - `/quic/sized/N`: so many octets, of {@link content} again and again.
 * - `/quic/not-modified`: a 304.
 * - `/quic/address`: where the request came from.
 * - `/quic/suite`: the cipher suite.
 * - `/quic/later`: an answer after 300 ms.
 */
export function quicApplication(): FetchHandler {
  const rest = application()
  return async (request, context) => {
    const [, what, argument] = /^\/quic\/([^/]+)\/?(.*)$/.exec(new URL(request.url).pathname) ?? []
    switch (what) {
      case 'sized':
        return new Response(sized(Number(argument)))
      case 'not-modified':
        return new Response(null, { status: 304, headers: { etag: '"one"' } })
      case 'address':
        return new Response(`${context.remote.address}:${context.remote.port}`)
      case 'suite':
        return new Response(context.tls?.cipher)
      case 'later':
        await new Promise((resolve) => setTimeout(resolve, 300))
        return new Response('later')
      default:
        return await rest(request, context)
    }
  }
}

/** The content of `/quic/sized/N`. */
export function sized(size: number): Uint8Array<ArrayBuffer> {
  return Buffer.alloc(size, content)
}

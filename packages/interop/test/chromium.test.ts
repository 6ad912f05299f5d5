/** Headless Chromium: a page with 100 resources, over one connection of HTTP/2, from the server and through the gateway; of HTTP/3 from both. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokenOff } from '../src/application.ts'
import { Browser } from '../src/chromium.ts'
import { site, tellPageStory } from '../src/chromium-site.ts'
import { openFolder, openGateway, openServer } from '../src/stage.ts'
import { openPlace, places } from '../src/web-stage.ts'

const quick = { timeout: 90_000 }

for (const place of places) {
  test(`Chromium and ${place}: 100 resources on one connection`, quick, async (t) => {
    const open = await openPlace(t, place, site())
    const browser = new Browser(t, open.folder.identity.cert)
    const tab = await browser.open()
    await tellPageStory(tab, open.secure, 'h2')
    await browser.close()
  })
}

for (const place of ['the server', 'the gateway'] as const) {
  test(`Chromium and ${place}: 100 resources on one connection of HTTP/3`, quick, async (t) => {
    const folder = openFolder(t)
    const { cert, key } = folder.identity
    const onError = (error: unknown): undefined => assert.ok(error instanceof BrokenOff, String(error)) as undefined
    const server = await openServer(t, { fetch: site(), onError, protocols: ['h3'], tls: { cert, key } })
    const port =
      place === 'the server'
        ? server.port
        : (await openGateway(t, folder, { port: server.port, protocol: 'h3' }, { protocols: '[h3, h2]' })).secure
    const browser = new Browser(t, cert, [`--origin-to-force-quic-on=localhost:${port}`, '--host-resolver-rules=MAP localhost 127.0.0.1'])
    await tellPageStory(await browser.open(), `https://localhost:${port}`, 'h3')
    await browser.close()
  })
}

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { isOwnHost, serveAdmin } from './admin.ts'

test('it answers to its own address, localhost, IP addresses and names it was given, and to no other', () => {
  const address = { host: 'admin.internal', port: 1, hosts: ['gw.example.org'] }
  for (const host of ['admin.internal', 'ADMIN.internal.', 'localhost', '127.0.0.1', '[::1]', '10.0.0.1', 'gw.example.org'])
    assert.equal(isOwnHost(host, address), true, host)
  for (const host of ['attacker.example', 'x.localhost', 'localhost.attacker.example', 'x.gw.example.org', '127.0.0.1.attacker.example'])
    assert.equal(isOwnHost(host, address), false, host)
})

test('another host is told 421 whatever it asks for', async () => {
  const server = await serveAdmin({ host: '127.0.0.1', port: 0, hosts: [] }, {} as never)
  const statusFor = (path: string, host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request({ port: server.port, host: '127.0.0.1', path, headers: { host }, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      sent.on('error', reject).end()
    })
  try {
    for (const path of ['/', '/config', '/metrics', '/healthz']) {
      assert.equal(await statusFor(path, 'attacker.example'), 421, path)
      assert.equal(await statusFor(path, `attacker.example:${server.port}`), 421, path)
    }
    for (const host of ['localhost', `localhost:${server.port}`, `127.0.0.1:${server.port}`, `[::1]:${server.port}`])
      for (const path of ['/', '/healthz']) assert.equal(await statusFor(path, host), 200, host)
  } finally {
    await server.close({ deadline: 0 })
  }
})

import assert from 'node:assert/strict'
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import fc from 'fast-check'
import { AddressTable } from './udp-address.ts'
import { readSockaddr, writeSockaddr } from './udp-messages.ts'

test('IPv6 addresses are written as RFC 5952 has them', () => {
  const table = new AddressTable()
  for (const [given, written] of [
    ['::', '::'],
    ['::1', '::1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::', '2001:db8::'],
    ['2001:0db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['fe80::1.2.3.4', 'fe80::102:304'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['1:0:0:0:0:0:0:0', '1::'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['192.0.2.255', '192.0.2.255'],
  ] as const) {
    const address = table.parse(given, 443)
    assert.equal(address.host, written, given)
    assert.equal(address.family, written.includes(':') ? 6 : 4)
    assert.equal(address.key, written.includes(':') ? `[${written}]:443` : `${written}:443`)
    assert.equal(table.parse(given, 443), address)
  }
})

test('what is no address is refused', () => {
  const table = new AddressTable()
  for (const host of ['', 'localhost', '1.2.3', '1.2.3.4.5', '::1::', '[::1]', '1.2.3.256', '::1%', 'fe80::%']) {
    if (!isIPv6(host)) assert.throws(() => table.parse(host, 1), RangeError, host)
  }
  for (const port of [-1, 65_536, 1.5, NaN]) assert.throws(() => table.parse('::1', port), RangeError)
})

test('zones: names for people, numbers for the system', () => {
  const table = new AddressTable()
  assert.equal(table.parse('fe80::1%7', 1).scope, 7)
  assert.notEqual(table.parse('fe80::1%7', 1).key, table.parse('fe80::1%8', 1).key)
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    const scope = addresses?.find(({ scopeid }) => scopeid !== undefined && scopeid > 0)?.scopeid
    if (scope === undefined) continue
    assert.equal(table.parse(`fe80::1%${name}`, 1).scope, scope)
    assert.equal(table.parse(`fe80::1%${scope}`, 1).host, `fe80::1%${name}`)
  }
})

test("every address survives text and the system's form", () => {
  const table = new AddressTable()
  const view = new DataView(new ArrayBuffer(40))
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: 0, max: 65_535 }), (host, port) => {
      const address = table.parse(host, port)
      assert.ok(table.parse(address.host, port).equals(address))
      assert.ok(new AddressTable().parse(address.mappedHost, port).equals(address))
      assert.equal(writeSockaddr(view, 8, address, true), 28)
      assert.ok(readSockaddr(view, 8, table)!.equals(address))
      if (address.family !== 4) return
      assert.equal(writeSockaddr(view, 8, address, false), 16)
      assert.ok(readSockaddr(view, 8, table)!.equals(address))
    }),
  )
  view.setUint16(8, 1, true)
  assert.equal(readSockaddr(view, 8, table), undefined)
})

test('addresses differ in every part', () => {
  const table = new AddressTable()
  const parts: [4 | 6, number, number, number, number, number, number] = [6, 1, 2, 3, 4, 5, 6]
  const address = table.of(...parts)
  for (let at = 1; at < 7; at++) {
    const other = [...parts] as typeof parts
    other[at]! += 10
    assert.equal(table.of(...other).equals(address), false, `part ${at}`)
    assert.notEqual(table.of(...other).key, address.key)
  }
  assert.ok(table.of(...parts).equals(address))
})

test('a flood of forged addresses takes no room that lasts', () => {
  const table = new AddressTable()
  const seen = new Set<unknown>()
  for (let i = 0; i < 20_000; i++) table.of(4, i & 0xffff, i * 7919, 0, 0, 0, 0)
  for (let i = 0; i < 20_000; i++) seen.add(table.of(4, i & 0xffff, i * 7919, 0, 0, 0, 0))
  // Most had to be made again: their places were taken.
  assert.ok(seen.size > 18_000)
})

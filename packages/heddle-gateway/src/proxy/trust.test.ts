import { deepEqual, equal, throws } from 'node:assert/strict'
import { BlockList, isIPv4 } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { plainAddress, TrustList } from './trust.ts'

test('an address is trusted alone, a block with all it covers', () => {
  const trust = new TrustList(['192.0.2.7', '10.0.0.0/8', '172.16.0.0/12', '2001:db8::/33', '::1'])
  const trusted = ['192.0.2.7', '10.255.0.1', '172.31.255.255', '2001:db8:7fff::1', '::1']
  const others = ['192.0.2.8', '11.0.0.1', '172.32.0.0', '2001:db8:8000::1', '::2', '2001:db9::1']
  deepEqual(
    trusted.filter((address) => !trust.includes(address)),
    [],
  )
  deepEqual(
    others.filter((address) => trust.includes(address)),
    [],
  )
})

test('an IPv4 peer of a dual-stack socket is the IPv4 peer, in the list as well', () => {
  equal(new TrustList(['10.0.0.0/8']).includes('::ffff:10.1.2.3'), true)
  equal(new TrustList(['::ffff:10.0.0.0/104']).includes('10.1.2.3'), true)
  equal(new TrustList(['::ffff:10.0.0.1']).includes('10.0.0.1'), true)
  equal(new TrustList(['0.0.0.0/0']).includes('2001:db8::1'), false)
  equal(new TrustList(['::/0']).includes('192.0.2.1'), false)
})

test('a zone does not matter, and what is no IP address is never trusted', () => {
  equal(new TrustList(['fe80::/10']).includes('fe80::1%eth0'), true)
  equal(new TrustList(['0.0.0.0/0', '::/0']).includes('/run/gateway.sock'), false)
  equal(new TrustList([]).includes('127.0.0.1'), false)
  equal(plainAddress('fe80::1%eth0'), 'fe80::1')
  equal(plainAddress('::ffff:192.0.2.1'), '192.0.2.1')
})

test('what is no address or block is refused', () => {
  for (const entry of [
    '',
    'localhost',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0/8',
    '::ffff:10.0.0.0/90',
    '1.2.3.4/1e1',
  ]) {
    throws(() => new TrustList([entry]), TypeError, entry)
  }
})

test('blocks mean what net.BlockList says they mean', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(128), fc.oneof(fc.ipV4(), fc.ipV6()), fc.boolean(), (base, length, other, near) => {
      const family = isIPv4(base) ? 'ipv4' : 'ipv6'
      const bits = family === 'ipv4' ? length % 33 : length
      const address = near ? base : other
      const twin = new BlockList()
      twin.addSubnet(base, bits, family)
      const plain = plainAddress(address)
      const sameFamily = isIPv4(plain) === (family === 'ipv4')
      // Our list never mixes the families; theirs maps IPv4 into IPv6.
      const expected = sameFamily && twin.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6')
      if (!(base.startsWith('::ffff:') && base.includes('.'))) equal(new TrustList([`${base}/${bits}`]).includes(address), expected)
    }),
  )
})

import { UsageError } from './errors.ts'
import type { Head } from './head.ts'
import { isAuthority, isPath, isToken } from './validation.ts'

// Those before are the likeliest, and equal strings are compared faster than checked.
let checkedMethod = 'GET'
let checkedAuthority = ''
let checkedPath = '/'

/** Throws UsageError for a request that RFC 9113 §8.3.1 and RFC 9114 §4.3.1 do not let out. */
export function checkRequest(head: Head): void {
  const { method, scheme, authority, path, protocol } = head
  if (method !== checkedMethod) {
    if (!isToken(method)) throw new UsageError(`invalid method ${JSON.stringify(method)}`)
    checkedMethod = method
  }
  if (authority !== checkedAuthority) {
    if (!isAuthority(authority)) throw new UsageError(`invalid authority ${JSON.stringify(authority)}`)
    checkedAuthority = authority
  }
  if (method === 'CONNECT' && protocol === '') {
    // RFC 9113 §8.5, RFC 9114 §4.4: :scheme and :path are left out, and the authority has its port.
    if (path !== '' || !/:\d+$/.test(authority)) throw new UsageError('CONNECT takes a host and port, and no path')
    return
  }
  if (protocol !== '' && (method !== 'CONNECT' || !isToken(protocol))) throw new UsageError(`invalid protocol ${JSON.stringify(protocol)}`)
  if (scheme !== 'http' && scheme !== 'https') throw new UsageError(`invalid scheme ${JSON.stringify(scheme)}`)
  if (path === checkedPath) return
  if (!isPath(path) && !(path === '*' && method === 'OPTIONS')) throw new UsageError(`invalid path ${JSON.stringify(path)}`)
  if (path !== '*') checkedPath = path
}

import type * as nodeFfi from 'node:ffi'
import { endianness } from 'node:os'
import type { Unavailable } from './types.ts'

/** The module `node:ffi`. */
export type Ffi = typeof nodeFfi

/** Foreign functions, and the program's own symbols: Node's executable exports OpenSSL and what it is linked with. */
export interface NativeLibrary {
  readonly ffi: Ffi
  /** Kept for as long as the thread lives: closing it would invalidate every function and callback. */
  readonly library: nodeFfi.DynamicLibrary
}

/** What decides whether native code can be called; tests give others than this process's. */
export interface Surroundings {
  readonly versions: { readonly [name: string]: string | undefined }
  readonly platform: string
  readonly arch: string
  readonly littleEndian: boolean
  /** `process.getBuiltinModule('node:ffi')`. */
  ffi(): Ffi | undefined
  /** Opens the program itself as a library. */
  open(ffi: Ffi): nodeFfi.DynamicLibrary
}

const architectures: ReadonlySet<string> = new Set(['x64', 'arm64', 'riscv64', 'loong64', 'ppc64'])
const needed = 'HTTP/3 needs Node ≥ 26.9'

/** This process. */
export function ownSurroundings(): Surroundings {
  return {
    versions: process.versions,
    platform: process.platform,
    arch: process.arch,
    littleEndian: endianness() === 'LE',
    ffi: importQuietly,
    // Windows cannot open "the program" without its name.
    open: (ffi) => new ffi.DynamicLibrary(process.platform === 'win32' ? process.execPath : null),
  }
}

/** Finds out whether native code can be called here; every case has words of its own. */
export function openLibrary(surroundings: Surroundings): NativeLibrary | Unavailable {
  const { versions } = surroundings
  if (versions['bun'] !== undefined) return { unavailable: `${needed}; this is Bun ${versions['bun']}, which has no node:ffi` }
  if (versions['deno'] !== undefined) return { unavailable: `${needed}; this is Deno ${versions['deno']}, which has no node:ffi` }
  if (!surroundings.littleEndian || !architectures.has(surroundings.arch)) {
    return { unavailable: `HTTP/3 needs a 64-bit little-endian machine; this one is ${surroundings.arch}` }
  }
  let ffi: Ffi | undefined
  try {
    ffi = surroundings.ffi()
  } catch (error) {
    return { unavailable: `${needed}; node:ffi cannot be loaded: ${reason(error)}` }
  }
  if (ffi === undefined) return { unavailable: withoutFfi(versions['node'] ?? 'unknown') }
  try {
    return { ffi, library: surroundings.open(ffi) }
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_ACCESS_DENIED') {
      return { unavailable: 'HTTP/3 calls OpenSSL by node:ffi, which the permission model forbids; start Node with --allow-ffi' }
    }
    return { unavailable: `HTTP/3 calls OpenSSL by node:ffi, which cannot open Node's own symbols: ${reason(error)}` }
  }
}

function withoutFfi(version: string): string {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const enough = major > 26 || (major === 26 && minor >= 9)
  if (enough) return `HTTP/3 needs node:ffi, which this Node ${version} has not: started with --no-experimental-ffi, or built without it`
  return `${needed}, whose node:ffi it calls OpenSSL with; this is Node ${version}`
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Without the ExperimentalWarning: it would tell users of a choice that is not theirs. No other warning is held back. */
function importQuietly(): Ffi | undefined {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:ffi') as Ffi | undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

let own: NativeLibrary | Unavailable | undefined

/** What {@link openLibrary} says of this process, found out once a thread. */
export function nativeLibrary(): NativeLibrary | Unavailable {
  own ??= openLibrary(ownSurroundings())
  return own
}

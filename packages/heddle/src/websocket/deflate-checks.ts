import type { CompressionOptions } from './codec.ts'
import type { ConnectDeflate } from './connect-options.ts'
import { aBoolean, anInteger, windowBits, type OptionChecks } from './option-checks.ts'
import type { UpgradeDeflate } from './upgrade-options.ts'

/** How hard to compress, the same in all options named `deflate`. */
export const compressionChecks: OptionChecks<CompressionOptions & { threshold?: number }> = {
  threshold: anInteger(0, Infinity),
  level: anInteger(-1, 9),
  memoryLevel: anInteger(1, 9),
  contextSize: anInteger(0, 32_768),
}

/** Of `deflate` in the options of both sides' handshakes. */
export const deflateChecks: OptionChecks<UpgradeDeflate> & OptionChecks<ConnectDeflate> = {
  serverNoContextTakeover: aBoolean,
  clientNoContextTakeover: aBoolean,
  serverMaxWindowBits: windowBits,
  clientMaxWindowBits: windowBits,
  ...compressionChecks,
}

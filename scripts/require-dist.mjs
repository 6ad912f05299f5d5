/** Before a package is packed: without `dist/` there would be nothing in it. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'

if (!existsSync('dist/index.js')) {
  console.error(`${basename(process.cwd())} is not built, so its tarball would be empty: run npm run build in the workspace's root first`)
  process.exitCode = 1
}

import { readFileSync } from 'node:fs'

/** The version of this package. Both src/ and dist/ lie beside its description. */
export const version: string = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string })
  .version

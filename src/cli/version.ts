/** The version of the package. */
import { readFile } from 'node:fs/promises'

export async function version(): Promise<string> {
  // The same from src/cli and from dist/cli.
  const manifest = await readFile(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

/** A project's package.json. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { failed } from '../exit.js'

export interface Manifest {
  readonly type?: string
  readonly packageManager?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** Empty where there is none. */
export async function readManifest(project: string): Promise<Manifest> {
  const file = path.join(project, 'package.json')
  const text = await readFile(file, 'utf8').catch(() => '{}')
  try {
    return JSON.parse(text) as Manifest
  } catch {
    throw failed(`${file} is not JSON`, 'correct it first')
  }
}

/** The text with these scripts added, in the file's own indentation. */
export function withScripts(text: string, scripts: Readonly<Record<string, string>>): string {
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? '  '
  const manifest = JSON.parse(text) as Manifest
  const added = { ...manifest, scripts: { ...manifest.scripts, ...scripts } }
  return `${JSON.stringify(added, null, indent)}${text.endsWith('\n') || text === '{}' ? '\n' : ''}`
}

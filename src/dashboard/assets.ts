/**
 * The files of the interface, as Vite has built them: names with a hash are kept for ever by browsers. They are read when they are
 * first asked for, and kept; what could not be read, as where a process has too many files open, is read again. A name is looked for among those that there are, so none leads out of the directory.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { UI } from './location.js'

export interface Asset {
  readonly bytes: Uint8Array
  readonly type: string
  readonly cache: string
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.html': 'text/html; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
}

/** `name-Dk3f9aB2.js`, as Vite writes it. */
const HASHED = /[-.][\w-]{8,}\.\w+$/

const FOREVER = 'private, max-age=31536000, immutable'
const ASK_AGAIN = 'no-cache'

export type Assets = (name: string) => Promise<Asset | undefined>

export function assetsIn(directory: string): Assets {
  let names: Promise<ReadonlySet<string>> | undefined
  const kept = new Map<string, Promise<Asset>>()
  return async (name) => {
    names ??= list(directory).catch((error: unknown) => {
      names = undefined
      throw error
    })
    const type = TYPES[path.extname(name)]
    if (type === undefined || !(await names).has(name)) return undefined
    let asset = kept.get(name)
    if (!asset) {
      const cache = name.startsWith('assets/') && HASHED.test(name) ? FOREVER : ASK_AGAIN
      asset = readFile(path.join(directory, name)).then((bytes) => ({ bytes, type, cache }))
      kept.set(name, asset)
      asset.catch(() => kept.delete(name))
    }
    return asset
  }
}

async function list(directory: string): Promise<ReadonlySet<string>> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    return new Set(
      files.map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)).split(path.sep).join('/')),
    )
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOENT') throw error
    // It was not built.
    return new Set()
  }
}

export const readAsset: Assets = assetsIn(UI)

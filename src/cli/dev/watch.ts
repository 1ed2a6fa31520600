/** Watches the source files of a project, and says when some have changed: once for all that change together. */
import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs'
import path from 'node:path'

export interface Watch {
  close(): void
}

const SOURCES = /\.(?:[cm]?[jt]sx?|json|sql|prisma|graphql|ya?ml)$|(?:^|[\\/])\.env(?:\.\w+)?$/
const IGNORED = new Set(['node_modules', 'dist', 'build', 'coverage', 'out', 'tmp'])
/** An editor writes a file in several steps, and a formatter follows. */
const SETTLE_MS = 150
/** Each has a watcher of the kernel, of which there are not many. */
const MOST_DIRECTORIES = 2_000

export function watchSources(root: string, changed: (files: readonly string[]) => void): Watch {
  const watchers = new Map<string, FSWatcher>()
  const seen = new Map<string, string>()
  const pending = new Set<string>()
  let timer: NodeJS.Timeout | undefined

  const settle = (): void => {
    timer = undefined
    const files = [...pending].filter((file) => isChanged(file, seen))
    pending.clear()
    if (files.length > 0) changed(files.map((file) => path.relative(root, file)))
  }
  const note = (file: string): void => {
    pending.add(file)
    clearTimeout(timer)
    timer = setTimeout(settle, SETTLE_MS)
  }
  const add = (directory: string, found: (file: string) => void): void => {
    if (watchers.has(directory) || watchers.size >= MOST_DIRECTORIES) return
    try {
      const watcher = watch(directory, (_, name) => look(directory, name))
      watcher.on('error', () => remove(directory))
      watchers.set(directory, watcher)
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        const full = path.join(directory, entry.name)
        if (entry.isDirectory() && !isIgnored(entry.name)) add(full, found)
        else if (entry.isFile() && SOURCES.test(entry.name)) found(full)
      }
    } catch {
      remove(directory)
    }
  }
  const remove = (directory: string): void => {
    watchers.get(directory)?.close()
    watchers.delete(directory)
  }
  const look = (directory: string, name: string | null): void => {
    if (name === null || isIgnored(name)) return
    const full = path.join(directory, name)
    if (SOURCES.test(name)) note(full)
    // A new directory may have files already.
    else if (isDirectory(full)) add(full, note)
    else remove(full)
  }

  add(root, (file) => void seen.set(file, signatureOf(file)))
  return {
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

function isIgnored(name: string): boolean {
  return IGNORED.has(name) || (name.startsWith('.') && !name.startsWith('.env'))
}

/** Some systems tell of a file that was only read. */
function isChanged(file: string, seen: Map<string, string>): boolean {
  const now = signatureOf(file)
  if (seen.get(file) === now) return false
  seen.set(file, now)
  return true
}

function signatureOf(file: string): string {
  try {
    const { mtimeMs, size } = statSync(file)
    return `${mtimeMs} ${size}`
  } catch {
    return 'gone'
  }
}

function isDirectory(file: string): boolean {
  try {
    return statSync(file).isDirectory()
  } catch {
    return false
  }
}

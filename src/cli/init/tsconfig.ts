/** What a tsconfig.json says, as far as the files of `oncebox init` go by it. It is JSON with comments, and may extend others. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'

export interface TsConfig {
  /** Is a compiler option on? Of a file and those that it extends, the nearest that names it decides. */
  isOn(option: string): boolean
}

const MOST_EXTENDED = 10

/** Undefined if there is none. */
export async function readTsConfig(directory: string): Promise<TsConfig | undefined> {
  const texts: string[] = []
  let next: string[] = [path.join(directory, 'tsconfig.json')]
  while (next.length > 0 && texts.length < MOST_EXTENDED) {
    const [file = '', ...rest] = next
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined && texts.length === 0) return undefined
    const plain = withoutComments(text ?? '')
    texts.push(plain)
    // Of several that are extended the last one decides.
    next = [
      ...extendedBy(plain)
        .reverse()
        .flatMap((name) => fileOf(name, file)),
      ...rest,
    ]
  }
  return {
    isOn(option) {
      const named = texts.map((text) => new RegExp(`"${option}"\\s*:\\s*(true|false)`).exec(text)?.[1])
      return named.find((value) => value !== undefined) === 'true'
    },
  }
}

/** Those of strings stay, which are behind a quotation mark or a letter: `"src/*"`. */
function withoutComments(text: string): string {
  return text.replaceAll(/(^|[\s,{[])\/\*[^]*?\*\//g, '$1').replaceAll(/(^|[\s,{}[\]])\/\/.*$/gm, '$1')
}

function extendedBy(text: string): string[] {
  const [, list] = /"extends"\s*:\s*("[^"]*"|\[[^\]]*\])/.exec(text) ?? []
  return [...(list ?? '').matchAll(/"([^"]*)"/g)].map(([, name]) => name!)
}

/** As the compiler finds it: beside the file, else in a package. */
function fileOf(name: string, from: string): string[] {
  if (/^\.{1,2}\/|^\//.test(name)) {
    const file = path.resolve(path.dirname(from), name)
    return [file.endsWith('.json') ? file : `${file}.json`]
  }
  const { resolve } = createRequire(from)
  for (const wanted of [name, `${name}.json`, `${name}/tsconfig.json`]) {
    try {
      const found = resolve(wanted)
      if (found.endsWith('.json')) return [found]
    } catch {
      // The next form of its name.
    }
  }
  return []
}

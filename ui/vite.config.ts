/**
 * Builds the interface into dist/dashboard/ui. Its files are named relative to the page, which says by a `<base>` where it is
 * mounted, and nothing is inline: the policy of the page would refuse it.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'

const here = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))

/** What is bundled asks that its notice is kept. They ship beside it. */
function notices(): Plugin {
  return {
    name: 'notices',
    generateBundle() {
      const directories = [...this.getModuleIds()].flatMap((id) => {
        const [, directory] = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id) ?? []
        return directory === undefined ? [] : [directory]
      })
      const texts = [...new Set(directories)].sort().map((directory) => {
        const { name, version, license } = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8')) as {
          [key: string]: string
        }
        const file = path.join(directory, 'LICENSE')
        if (license !== 'MIT' || !existsSync(file))
          throw new Error(`${name} is bundled, and has no MIT licence beside it`)
        return `${name} ${version}\n\n${readFileSync(file, 'utf8').trim()}\n`
      })
      const source = `The interface is made with these.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source })
    },
  }
}

const FIELDS = ['text', 'integer', 'rate', 'flag', 'required']

/**
 * A browser needs the paths of routes and the names of what they take. The words are for docs/dashboard-api.md, and the checks are the
 * server's.
 */
function namesAlone(): Plugin {
  return {
    name: 'names-alone',
    enforce: 'pre',
    transform(code, id) {
      if (id.endsWith('/src/dashboard/routes.ts')) {
        const words = /\b(does: |(?:text|integer|rate|flag|name)\(\s*)'[^'\n]*'/g
        return { code: code.replace(words, "$1''"), map: null }
      }
      if (id.endsWith('/src/dashboard/fields.ts')) {
        return {
          code: `const any = () => ({})\nexport { ${FIELDS.map((name) => `any as ${name}`).join(', ')} }`,
          map: null,
        }
      }
    },
  }
}

export default defineConfig({
  root: here('.'),
  base: './',
  // Another copy of the signals would be another world of them.
  resolve: { dedupe: ['preact', '@preact/signals-core'] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [namesAlone(), notices()],
  build: {
    outDir: here('../dist/dashboard/ui'),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: ['chrome123', 'firefox120', 'safari17.5'],
    reportCompressedSize: false,
    // How long a plugin took depends on what else the machine does.
    rolldownOptions: { output: { comments: false }, checks: { bundlerTimings: false } },
  },
})

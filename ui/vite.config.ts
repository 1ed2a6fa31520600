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

/** The words about routes are for docs/dashboard-api.md. */
function quietRoutes(): Plugin {
  return {
    name: 'quiet-routes',
    enforce: 'pre',
    transform(code, id) {
      if (id.endsWith('/src/dashboard/routes.ts'))
        return { code: code.replace(/\bdoes: '[^'\n]*'/g, "does: ''"), map: null }
    },
  }
}

export default defineConfig({
  root: here('.'),
  base: './',
  // Another copy of the signals would be another world of them.
  resolve: { dedupe: ['preact', '@preact/signals-core'] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [quietRoutes(), notices()],
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

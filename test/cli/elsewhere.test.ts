/**
 * The command line where others run it: package managers that do not hoist, Node.js that takes types away itself, zsh and fish.
 *
 * It takes minutes and downloads, so it has to be asked for, by names or as a whole:
 *
 *     ONCEBOX_ELSEWHERE=all npx vitest run test/cli/elsewhere.test.ts
 *     ONCEBOX_ELSEWHERE=pnpm,node24,fish npx vitest run test/cli/elsewhere.test.ts
 */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findOrInstall, findProgram } from '../../tools/services/packages.mjs'
import { installed } from '../support/installed.js'
import { cli } from './fixture.js'
import { openProject, ROOT, start } from './project.js'

const run = promisify(execFile)
const asked = process.env['ONCEBOX_ELSEWHERE']?.split(',') ?? []
const isAsked = (name: string): boolean => asked.includes('all') || asked.includes(name)
const LONG_MS = 600_000

/** What each is installed as, how it is started, and what it needs in a project. */
const MANAGERS: Readonly<Record<string, { packages: string[]; program: string; files: Record<string, string> }>> = {
  pnpm: { packages: ['pnpm@10.18.0'], program: 'pnpm/bin/pnpm.cjs', files: { 'pnpm-lock.yaml': '' } },
  yarn: { packages: ['yarn@1.22.22'], program: 'yarn/bin/yarn.js', files: { 'yarn.lock': '' } },
  'yarn-berry': {
    packages: ['@yarnpkg/cli-dist@4.10.3'],
    program: '@yarnpkg/cli-dist/bin/yarn.js',
    files: { 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: node-modules\nenableTelemetry: false\n' },
  },
  bun: { packages: ['bun@1.3.0'], program: 'bun/bin/bun.exe', files: { 'bun.lock': '' } },
}

let packed: string
let packedIn: string
beforeAll(async () => {
  if (!Object.keys(MANAGERS).some(isAsked)) return
  packedIn = await mkdtemp(path.join(tmpdir(), 'oncebox-packed-'))
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', packedIn]
  const { stdout } = await run('npm', pack, { cwd: ROOT, maxBuffer: 64 << 20 })
  packed = path.join(packedIn, (JSON.parse(stdout) as [{ filename: string }])[0].filename)
})
afterAll(async () => {
  if (packedIn) await rm(packedIn, { recursive: true, force: true })
})

describe.each(Object.keys(MANAGERS))('%s', (name) => {
  test.skipIf(!isAsked(name))(
    'installs it, runs what init writes in dev, and its test; work finds its config',
    async () => {
      const { packages, program, files } = MANAGERS[name]!
      const { directory: modules } = await installed(name, packages, { scripts: name === 'bun' })
      const file = path.join(modules, 'node_modules', program)
      const directory = await realpath(await mkdtemp(path.join(tmpdir(), 'oncebox-elsewhere-')))
      await chmod(directory, 0o755)
      // Under the name that `oncebox init` calls.
      const bin = path.join(modules, 'bin')
      const called = name.split('-')[0]!
      await run('mkdir', ['-p', bin])
      const starts = name === 'bun' ? `exec ${file} "$@"` : `exec ${process.execPath} ${file} "$@"`
      await writeFile(path.join(bin, called), `#!/bin/sh\n${starts}\n`, { mode: 0o755 })
      const env = { PATH: `${bin}:${process.env['PATH']}`, YARN_ENABLE_IMMUTABLE_INSTALLS: 'false', CI: '' }
      const done = async (words: string[]): Promise<string> => {
        const command = start(words, directory, env)
        expect(await command.exited, `${words.join(' ')}\n${command.stdout}\n${command.stderr}`).toBe(0)
        return command.stdout + command.stderr
      }
      try {
        await writeFile(path.join(directory, 'package.json'), '{ "name": "shop", "private": true, "type": "module" }')
        for (const [own, text] of Object.entries(files)) await writeFile(path.join(directory, own), text)
        await done([called, 'add', `oncebox@file:${packed}`, 'pg'])
        const oncebox = path.join(directory, 'node_modules/.bin/oncebox')
        expect(await done([oncebox, 'init', '--yes'])).toContain(`now: ${called} ${name === 'bun' ? 'run ' : ''}dev`)
        const manifest = await readFile(path.join(directory, 'package.json'), 'utf8')
        expect(manifest).toContain('@electric-sql/pglite')

        const dev = start([oncebox, 'dev'], directory, env)
        await dev.saw(/handled {6}greeting\.asked/)
        const status = start([oncebox, 'status', '--json'], directory, env)
        expect(await status.exited, status.stderr).toBe(0)
        dev.kill('SIGINT')
        expect(await dev.exited).toBe(0)
        const work = start([oncebox, 'work'], directory, { ...env, DATABASE_URL: 'postgres://127.0.0.1:1/none' })
        expect(await work.exited, work.stderr).toBe(4)
        expect(await done([called, 'run', 'test'])).toContain('a greeting that is asked for three times is sent once')
        expect(await done([oncebox, 'init', '--yes'])).toContain('there is nothing to do')
      } finally {
        await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
      }
    },
    LONG_MS,
  )
})

describe.each(['22', '24'])('Node.js %s', (major) => {
  test.skipIf(!isAsked(`node${major}`))(
    'reads a config in TypeScript by itself, with files that are imported as .js',
    async () => {
      const { directory: modules } = await installed(`node-${major}`, [`node@${major}`], { scripts: true })
      const node = path.join(modules, 'node_modules/node/bin/node')
      await using project = await openProject({
        'package.json': JSON.stringify({ type: 'module', dependencies: { oncebox: '*', pg: '*' } }),
        'tsconfig.json': '{ "compilerOptions": { "module": "nodenext", "verbatimModuleSyntax": true } }',
      })
      const main = path.join(ROOT, 'dist/cli/main.js')
      const init = project.program([node, main, 'init', '--yes', '--no-install'])
      expect(await init.exited, init.stderr).toBe(0)
      const dev = project.program([node, main, 'dev', '--once'])
      await dev.saw(/handled {6}greeting\.asked/)
      dev.kill('SIGINT')
      expect(await dev.exited).toBe(0)
      expect(project.has('node_modules/tsx')).toBe(false)
    },
    LONG_MS,
  )
})

describe('completion', () => {
  const shell = async (name: string): Promise<string> =>
    (await findOrInstall({ package: name, find: () => findProgram(name) })).path

  test.skipIf(!isAsked('fish'))('fish offers commands, verbs and options', async () => {
    const fish = await shell('fish')
    const { stdout: script } = await cli(['completion', 'fish'])
    const offered = async (typed: string): Promise<string[]> => {
      const { stdout } = await run(fish, ['--no-config', '-c', `${script}\ncomplete -C '${typed}'`])
      return stdout.split('\n').map((line) => line.split('\t')[0]!) // prettier-ignore
    }
    expect(await offered('oncebox ')).toEqual(expect.arrayContaining(['dead', 'doctor', 'work']))
    expect((await offered('oncebox dead ')).filter(Boolean)).toEqual(['discard', 'ls', 'retry'])
    expect(await offered('oncebox dead retry --co')).toEqual(expect.arrayContaining(['--consumer', '--config']))
    expect((await offered('oncebox completion f')).filter(Boolean)).toEqual(['fish'])
    expect(await offered('oncebox migrate status --')).not.toContain('--watch')
  })

  test.skipIf(!isAsked('zsh'))('zsh offers commands, verbs and options', async () => {
    const zsh = await shell('zsh')
    const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-zsh-'))
    try {
      await writeFile(path.join(directory, 'oncebox.zsh'), (await cli(['completion', 'zsh'])).stdout)
      // A shell in a terminal of its own: what it completes is read from its line.
      await writeFile(
        path.join(directory, 'try.zsh'),
        `zmodload zsh/zpty
        zpty -b inner ${zsh} -f -i
        ask() { zpty -w inner "$1" }
        ask "PS1=; unsetopt zle_bracketed_paste 2>/dev/null; autoload -Uz compinit && compinit -u -d ${directory}/dump && source ${directory}/oncebox.zsh"
        ask "bindkey '^I' complete-word; bindkey '^X' accept-line; oncebox() { print -r -- \\"[ran:\\$*]\\" }; print READY"
        zpty -r inner seen '*READY*READY*'
        zpty -w -n inner "$1"$'\\t'$'\\x18'
        zpty -r inner seen '*\\[ran:*\\]*'
        print -r -- "$seen"
        zpty -d inner`,
      )
      const completed = async (typed: string): Promise<string> => {
        const { stdout } = await run(zsh, ['-f', path.join(directory, 'try.zsh'), typed], { timeout: 60_000 })
        return /\[ran:([^\]]*)\]/.exec(stdout)![1]!.trim()
      }
      expect(await completed('oncebox doc')).toBe('doctor')
      expect(await completed('oncebox dead ret')).toBe('dead retry')
      expect(await completed('oncebox dead retry --consu')).toBe('dead retry --consumer')
      expect(await completed('oncebox completion f')).toBe('completion fish')
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})

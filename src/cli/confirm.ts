/** Asks before something is changed that cannot be taken back. */
import { createInterface } from 'node:readline/promises'
import { EXIT, Exit, failed, misused } from './exit.js'
import { isInteractive, type Io } from './io.js'
import { render, type Text } from './output/text.js'

/** Goes on only with a yes: by `--yes`, or by somebody at a terminal. Nobody is asked in a pipe or in CI. */
export async function confirm(io: Io, question: Text, { yes }: { readonly yes: boolean }): Promise<void> {
  if (yes) return
  const asked = render(question, { colour: false })
  if (!isInteractive(io)) throw misused(`${asked}: nobody is here to be asked`, 'add --yes to go on without a question')
  // Not `terminal`: Ctrl-C then is the signal that it is everywhere else.
  const terminal = createInterface({ input: io.stdin, output: io.stderr as NodeJS.WritableStream, terminal: false })
  // Ctrl-D: there is no answer any more, and a question would wait for it for ever.
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([terminal.question(`${asked}? [y/N] `, { signal: io.signal }), ended])
    if (!/^y(es)?$/i.test(answer.trim())) throw failed('nothing was changed')
  } catch (error) {
    if (io.signal.aborted) throw new Exit(EXIT.interrupted, 'interrupted; nothing was changed')
    throw error
  } finally {
    terminal.close()
  }
}

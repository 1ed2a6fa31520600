/** An error with its stack: own frames dark, those of libraries grey, the rest folded; its causes inside. */
import { useSignal } from '@preact/signals'
import type { FailureTree } from '../../api.js'
import { linesOf, type Line } from '../../logic/stack.js'
import { Shown } from '../shown.js'

export function Trace({ error, label }: { error: FailureTree; label: string }) {
  return (
    <pre class="trace" tabIndex={0} role="group" aria-label={label}>
      <OneError error={error} />
    </pre>
  )
}

function OneError({ error, isCause = false }: { error: FailureTree; isCause?: boolean }) {
  const lines = linesOf(error.stack ?? '')
  return (
    <>
      {isCause && <span class="e">{'  cause: '}</span>}
      <span class={isCause ? '' : 'e'}>
        <Shown text={wordsOf(error)} />
      </span>
      {error.code !== undefined && <span class="lib">{` { code: '${error.code}' }`}</span>}
      {'\n'}
      {lines.map((line, n) => (
        <LineView line={line} key={n} />
      ))}
      {error.cause && <OneError error={error.cause} isCause />}
    </>
  )
}

function LineView({ line }: { line: Line }) {
  const open = useSignal(false)
  if (line.kind !== 'fold') {
    return (
      <span class={line.kind === 'own' ? 'own' : 'lib'}>
        <Shown text={line.text} />
        {'\n'}
      </span>
    )
  }
  if (open.value) return line.frames.map((frame, n) => <LineView line={frame} key={n} />)
  return (
    <button type="button" class="fold lib" onClick={() => (open.value = true)}>
      {`${line.text}\n`}
    </button>
  )
}

/** An error in one line. Without the right to see bodies it has no words. */
export function wordsOf({ name, message }: { readonly name: string; readonly message?: string }): string {
  return message === undefined || message === '' ? name : `${name}: ${message}`
}

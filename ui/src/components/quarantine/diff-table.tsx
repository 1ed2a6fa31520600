/** Both bodies side by side; on a phone one above the other. What differs is underlined and signed. */
import type { DiffRow, Difference, Line } from '../../logic/diff/index.js'
import { count, plural } from '../../logic/format.js'

export function DiffTable({ of: { rows, isCut } }: { of: Difference }) {
  // Of long bodies the numbers of lines are long as well.
  const wide = rows.some((row) => lineOf(row) > 999) ? 'w-g-long' : 'w-g'
  return (
    <>
      <table class="diff">
        <caption class="vh">First body left, second body right</caption>
        <colgroup>
          <col class={wide} />
          <col />
          <col class={wide} />
          <col />
        </colgroup>
        <tbody>
          {rows.map((row, at) => (
            <Row key={at} row={row} />
          ))}
        </tbody>
      </table>
      {isCut && <p class="note">There is more that differs than is shown here. Copy both to compare them elsewhere.</p>}
    </>
  )
}

function lineOf(row: DiffRow): number {
  if (row.kind === 'fold' || row.kind === 'cut') return 0
  return row.kind === 'added' ? row.right.line : row.left.line
}

function Row({ row }: { row: DiffRow }) {
  switch (row.kind) {
    case 'fold':
      return (
        <tr class="fold">
          <td colSpan={4}>{foldWords(row)}</td>
        </tr>
      )
    case 'cut':
      return (
        <tr class="fold">
          <td colSpan={4}>
            {row.side === 'left' ? '−' : '+'} {plural(row.lines, 'more line')}
          </td>
        </tr>
      )
    case 'same':
      return (
        <tr>
          <Cells line={row.left} kind="" />
          <Cells line={row.right} kind="same-b" />
        </tr>
      )
    case 'changed':
      return (
        <tr>
          <Cells line={row.left} kind="del" />
          <Cells line={row.right} kind="add" />
        </tr>
      )
    case 'removed':
      return (
        <tr>
          <Cells line={row.left} kind="del" />
          <Void />
        </tr>
      )
    case 'added':
      return (
        <tr>
          <Void />
          <Cells line={row.right} kind="add" />
        </tr>
      )
  }
}

const SIGNS = { del: ' −', add: ' +', 'same-b': '', '': '' } as const

function Cells({ line: { line, before, mark, after }, kind }: { line: Line; kind: keyof typeof SIGNS }) {
  const Mark = kind === 'add' ? 'ins' : 'del'
  return (
    <>
      <td class={`g ${kind}`} aria-hidden="true">
        {line}
        {SIGNS[kind]}
      </td>
      <td class={kind}>
        {before}
        {mark !== '' && <Mark>{mark}</Mark>}
        {after}
      </td>
    </>
  )
}

function Void() {
  return (
    <>
      <td class="g void" aria-hidden="true" />
      <td class="void" />
    </>
  )
}

function foldWords({ lines, names, more }: Extract<DiffRow, { kind: 'fold' }>): string {
  const named = names.length === 0 ? '' : `: ${names.join(', ')}${more > 0 ? ` and ${count(more)} more` : ''}`
  return `⋯ ${plural(lines, 'equal line')}${named}`
}

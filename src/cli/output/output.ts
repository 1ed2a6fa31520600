/** What a command says: data on stdout, everything else on stderr. */
import { escapedJson } from '../../escape.js'
import { hasColour, type Io } from '../io.js'
import { createProgress, type Progress } from './progress.js'
import { tableLines, type Column } from './table.js'
import { render, type Text } from './text.js'

export interface Output {
  /** Asked for JSON: then nothing but JSON goes to stdout. */
  readonly json: boolean
  /** Columns of the terminal; undefined in a pipe. */
  readonly width: number | undefined
  /** A line on stdout. Plain strings in it are escaped. */
  line(...text: readonly Text[]): void
  /** Text of our own on stdout, with its line breaks, as it is: SQL, a script. Never anything of a stranger. */
  verbatim(text: string): void
  table(columns: readonly Column[], rows: readonly (readonly Text[])[]): void
  /** The same as text, for what draws it itself. */
  rows(columns: readonly Column[], rows: readonly (readonly Text[])[]): string[]
  rendered(...text: readonly Text[]): string
  /** A value as one line of JSON on stdout. */
  document(value: unknown): void
  /** A line on stderr. */
  note(...text: readonly Text[]): void
  progress(what: string, total: number): Progress
}

export interface OutputOptions {
  readonly json: boolean
  readonly raw: boolean
}

export function createOutput(io: Io, { json, raw }: OutputOptions): Output {
  const { stdout, stderr } = io
  const width = stdout.isTTY ? (stdout.columns ?? 80) : undefined
  const ours = { colour: hasColour(io, stdout), raw, width }
  const theirs = { colour: hasColour(io, stderr) }
  return {
    json,
    width,
    line: (...text) => void stdout.write(`${render(text, ours)}\n`),
    verbatim: (text) => void stdout.write(text),
    rows: (columns, rows) => tableLines(columns, rows, ours),
    rendered: (...text) => render(text, ours),
    table(columns, rows) {
      for (const line of tableLines(columns, rows, ours)) stdout.write(`${line}\n`)
    },
    document: (value) => void stdout.write(`${raw ? JSON.stringify(value) : escapedJson(value)}\n`),
    note: (...text) => void stderr.write(`${render(text, theirs)}\n`),
    progress: (what, total) => createProgress(stderr, what, total),
  }
}

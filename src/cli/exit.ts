/** How a command ends: its exit code, and what is said on stderr. */

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unhealthy: 3,
  unconnected: 4,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What each code means, for `--help` and the page. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failed',
  2: 'the command was written wrongly',
  3: 'unhealthy: a serious finding, too much lag, a schema to migrate',
  4: 'cannot connect to the database',
  130: 'interrupted',
}

/** Ends the command. Its message and the advice, which says what to do, are printed; a stack is not. */
export class Exit extends Error {
  override readonly name = 'Exit'
  readonly code: ExitCode
  readonly advice: string | undefined

  constructor(code: ExitCode, message: string, advice?: string) {
    super(message)
    this.code = code
    this.advice = advice
  }
}

export function failed(message: string, advice?: string): Exit {
  return new Exit(EXIT.failed, message, advice)
}

export function misused(message: string, advice?: string): Exit {
  return new Exit(EXIT.usage, message, advice)
}

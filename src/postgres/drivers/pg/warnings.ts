/** Warnings of the server while something commits: a COMMIT that it warns about may be lost if the primary fails. */
import { OnceboxError } from '../../../errors.js'
import type { Client, Notice } from './client.js'

/** Rejects with COMMIT_UNCERTAIN if the server warns meanwhile, unless the warning is about something else. */
export async function heedWarnings<R>(
  client: Client,
  work: () => Promise<R>,
  isAboutIt: () => boolean = () => true,
): Promise<R> {
  let warning: Notice | undefined
  const onNotice = (notice: Notice): void => {
    if (isWarning(notice) && isAboutIt()) warning ??= notice
  }
  client.on('notice', onNotice)
  try {
    const result = await work()
    if (warning !== undefined) throw uncertain(warning)
    return result
  } finally {
    client.off('notice', onNotice)
  }
}

/**
 * By SQLSTATE besides severity, which is translated with `lc_messages`: class 01 is warnings, class 57 is an
 * operator who cancelled the wait for a synchronous standby, 25P01 says that there was nothing to commit.
 */
function isWarning({ severity, code = '' }: Notice): boolean {
  if (isFarewell(code)) return false
  return severity === 'WARNING' || code.startsWith('01') || code.startsWith('57') || code === '25P01'
}

/**
 * The server ends the session: it was told to stop, or another of its processes crashed. Where that is said no answer comes
 * any more, so whatever was answered was answered before.
 */
function isFarewell(code: string): boolean {
  return code.startsWith('57P')
}

function uncertain(warning: Notice): OnceboxError {
  return warning.code === '25P01'
    ? new OnceboxError('HANDLER_COMMITTED', 'the transaction was ended inside the work that it was opened for')
    : new OnceboxError(
        'COMMIT_UNCERTAIN',
        `the server warned during COMMIT: ${warning.message ?? 'no message'}. It may be lost if the primary fails`,
        { cause: warning },
      )
}

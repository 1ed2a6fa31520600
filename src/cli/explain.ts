/** What an error means to the user who typed a command: an exit code, a line, and what to do. */
import { OnceboxError } from '../errors.js'
import { cannotConnect, isAway } from './connect/problem.js'
import { EXIT, Exit, failed, misused } from './exit.js'
import { masked } from './secrets.js'

/** Without passwords, whoever quotes what was typed. `flags` lead a further command to the same database: ` --schema billing`. */
export function explain(error: unknown, flags = ''): Exit {
  const { code, message, advice } = meaningOf(error, flags)
  return new Exit(code, masked(message), advice === undefined ? undefined : masked(advice))
}

function meaningOf(error: unknown, flags: string): Exit {
  if (error instanceof Exit) return error
  if (error instanceof OnceboxError) return explainCode(error, flags)
  if (isAway(error)) return cannotConnect(error, 'the database')
  return failed(error instanceof Error ? error.message : String(error))
}

function explainCode(error: OnceboxError, flags: string): Exit {
  const text = `${error.message} (${error.code})`
  switch (error.code) {
    case 'OPTION_INVALID':
    case 'FILTER_INVALID':
    case 'CURSOR_INVALID':
      return misused(text)
    case 'SCHEMA_OUTDATED':
      return failed(
        `${error.message.replace(/;? run box\.migrate\(\) first/, '')} (${error.code})`,
        `run: oncebox migrate up${flags}`,
      )
    case 'CONSUMER_UNKNOWN':
      return failed(
        text.replace(/; consumers\(\) lists those there are/, ''),
        `oncebox consumer ls${flags} lists those there are`,
      )
    default:
      return isAway(error.cause) ? cannotConnect(error.cause, 'the database') : failed(text)
  }
}

export function interrupted(message = 'interrupted'): Exit {
  return new Exit(EXIT.interrupted, message)
}

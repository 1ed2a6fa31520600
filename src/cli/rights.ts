/** A role of the database that may not do what was typed: which one may. */
import { OnceboxError } from '../errors.js'
import { sqlState } from '../postgres/errors.js'
import type { Role } from '../postgres/roles.js'
import type { Command } from './command.js'
import { shellWord } from './connect/place.js'
import { failed, type Exit } from './exit.js'

/** What is wrong, if it is that; undefined for all other errors, and for what says itself which rights it needs. */
export async function deniedOf(
  error: unknown,
  command: Command,
  schemaOf: () => Promise<string>,
): Promise<Exit | undefined> {
  const cause = error instanceof OnceboxError && error.code === 'RIGHTS_MISSING' ? error.cause : error
  const role = roleOf(command)
  if (role === undefined || sqlState(cause) !== '42501') return undefined
  const schema = await schemaOf()
  const which = shellWord(schema)
  const flags = schema === 'oncebox' || which === undefined ? '' : ` --schema ${which}`
  return failed(
    `the role that you connect as may not do that: ${(cause as Error).message} (RIGHTS_MISSING)`,
    `oncebox ${command.name} needs the rights of ${schema}_${role}, or more: connect as a role that has them; oncebox migrate sql --roles${flags} prints how the roles are made`,
  )
}

/** The least of them with which the command works. What is signed changes something. */
function roleOf({ name, connects, options }: Command): Role | undefined {
  if (!connects || name === 'bench' || name === 'migrate up') return undefined
  if (name === 'prune') return 'janitor'
  return 'by' in options ? 'worker' : 'viewer'
}

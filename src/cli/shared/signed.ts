/** Who does it, and why, for the audit. */
import { hostname, userInfo } from 'node:os'
import type { Signed } from '../../admin/index.js'
import { text, type OptionsOf } from '../option.js'

export const SIGNED = {
  reason: text('Why, for the audit.', 'words'),
  by: text('Who, for the audit (default: your user and host).', 'name'),
}

export function signedBy({ by, reason }: OptionsOf<typeof SIGNED>): Signed {
  return { by: by ?? `${userName()}@${hostname()}`, ...(reason !== undefined && { reason }) }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run as a user that has no name.
    return process.env['USER'] ?? `uid ${process.getuid?.() ?? ''}`
  }
}

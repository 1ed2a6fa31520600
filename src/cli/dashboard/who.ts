/**
 * Who may look at the dashboard that the command line serves: those who have the token; without a token, everybody on this machine.
 *
 * A browser asks its user for a name and a password, and sends them with every request of that address from then on: no cookie
 * is needed, and no page to log in at. The password is the token, the name is for the audit. Scripts send `Bearer` instead.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Authorize } from '../../dashboard/index.js'
import { checkLocal } from '../../dashboard/guard.js'
import { masked } from '../secrets.js'

const WITHOUT_TOKEN = {
  runs: 'was started without a token',
  otherwise: 'start it with one, in ONCEBOX_DASHBOARD_TOKEN or --token-file, to let others in',
}

/** Enough for a token of `openssl rand -hex 16`, and more than a word. */
export const LEAST_TOKEN = 20

export interface Gate {
  readonly token: string | undefined
  /** Who has started it. Without a token, that is who acts. */
  readonly by: string
}

export function authorizeBy({ token, by }: Gate): Authorize {
  if (token === undefined) {
    return (request) => {
      checkLocal(request, WITHOUT_TOKEN)
      return { may: 'all', by }
    }
  }
  return (request) => {
    const given = credentialsOf(request.headers.get('authorization') ?? '')
    if (given && isSame(given.token, token)) return { may: 'all', by: nameOf(given.name) ?? 'token' }
    return new Response('The password is the token that this dashboard was started with.\n', {
      status: 401,
      headers: {
        'www-authenticate': 'Basic realm="oncebox", charset="UTF-8"',
        'content-type': 'text/plain; charset=utf-8',
      },
    })
  }
}

function credentialsOf(header: string): { readonly name?: string; readonly token: string } | undefined {
  const [, scheme = '', value = ''] = /^(basic|bearer) +(\S+)$/i.exec(header) ?? []
  if (scheme.toLowerCase() === 'bearer') return { token: value }
  if (scheme === '') return undefined
  const text = Buffer.from(value, 'base64').toString()
  const colon = text.indexOf(':')
  if (colon < 0) return undefined
  return { token: text.slice(colon + 1), name: text.slice(0, colon) }
}

const MOST_NAME = 200

/** A name goes to the audit: what is none there is left out. To look for passwords in a long one would take its time. */
function nameOf(given: string | undefined): string | undefined {
  if (given === undefined || given.length > MOST_NAME) return undefined
  const name = masked(given).replaceAll(/[^\p{L}\p{N}@._+ -]/gu, '').slice(0, 100).trim() // prettier-ignore
  return name === '' ? undefined : name
}

/** In a time that says nothing of how much of it is right. */
function isSame(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

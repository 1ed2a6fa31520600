/**
 * Sign: what the server gives out and takes back later, cursors and confirmations, sealed. A seal holds for one kind, one
 * subject and one box: whoever carries another's, or one that was changed, is told to begin again.
 *
 * The key is made from the option `secret`, the same in every process that serves the dashboard. Without it each process has a key
 * of its own, and where several answer in turn a page may have to be asked for again. Nothing is kept in the database for it.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { sharedByCopies } from '../copies.js'

/** What a seal holds for. */
export interface Bearer {
  readonly kind: 'page' | 'confirmation'
  readonly subject: string
  readonly box: string
}

export interface Signer {
  seal(bearer: Bearer, content: unknown): string
  /** Undefined if it is not one of ours, or not for this bearer. */
  open(bearer: Bearer, token: string): unknown
}

const ownKey = (): Buffer => sharedByCopies('dashboard-key', () => randomBytes(32))

export function createSigner(secret: string | undefined): Signer {
  const key = secret === undefined ? ownKey() : Buffer.from(hkdfSync('sha256', secret, '', 'oncebox dashboard', 32))
  const sealOf = ({ kind, subject, box }: Bearer, content: string): Buffer =>
    createHmac('sha256', key)
      .update(JSON.stringify([kind, subject, box, content]))
      .digest()
  return {
    seal(bearer, content) {
      const text = Buffer.from(JSON.stringify(content)).toString('base64url')
      return `${text}.${sealOf(bearer, text).toString('base64url')}`
    },
    open(bearer, token) {
      const [text = '', seal = '', ...more] = token.split('.')
      const given = Buffer.from(seal, 'base64url')
      const own = sealOf(bearer, text)
      if (more.length > 0 || given.length !== own.length || !timingSafeEqual(given, own)) return undefined
      return JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown
    },
  }
}

/**
 * Sign: what the server gives out and takes back later, cursors and confirmations, sealed. A seal holds for one kind, one
 * subject and one box: a request with another user's, or with one that was changed, is told to begin again. Nobody can read what is in
 * it, for a cursor may be a key that its reader does not get to see.
 *
 * The key is made from the option `secret`, the same in every process that serves the dashboard. Without it each process has a key
 * of its own, and where several answer in turn a page may have to be asked for again. Nothing is kept in the database for it.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
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

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

export function createSigner(secret: string | undefined): Signer {
  const key = secret === undefined ? ownKey() : Buffer.from(hkdfSync('sha256', secret, '', 'oncebox dashboard', 32))
  return {
    seal(bearer, content) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv(CIPHER, key, iv).setAAD(aboutOf(bearer))
      const text = Buffer.concat([cipher.update(JSON.stringify(content)), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url')
    },
    open(bearer, token) {
      const bytes = Buffer.from(token, 'base64url')
      // Decoding is lenient: a token has one form.
      if (bytes.length < IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== token) return undefined
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(aboutOf(bearer)).setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
      try {
        return JSON.parse(Buffer.concat([text, decipher.final()]).toString()) as unknown
      } catch {
        return undefined
      }
    },
  }
}

function aboutOf({ kind, subject, box }: Bearer): Buffer {
  return Buffer.from(JSON.stringify([kind, subject, box]))
}

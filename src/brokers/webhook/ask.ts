/** Asks the receiver's own `verify`, and looks at what it answers: what is no message would be lost as one without a body. */
import { OnceboxError } from '../../errors.js'
import { mountOf, rememberMount } from '../../http/handler.js'
import { isResponse } from '../../http/response.js'
import type { Incoming } from '../../message.js'
import { isPromise } from '../../promises.js'
import type { ResolvedCustom } from './custom.js'

/** Looks at the body once it is there. Undefined: it is not the sender's. */
export type Verify = (body: Uint8Array) => Promise<readonly Incoming[] | Response | undefined>

/** Whatever `verify` says of its messages, their source is the webhook's. */
export function ask({ verify, source }: ResolvedCustom, request: Request): Verify {
  return async (body) => {
    const verdict: unknown = await verify(unread(request, body), body)
    if (verdict === false) return undefined
    if (isResponse(verdict)) return verdict
    const messages: readonly unknown[] = Array.isArray(verdict) ? verdict : [verdict]
    if (messages.filter(isPromise).length > 0) {
      throw unfit('verify answered a promise in the place of a message; wait for each of a list with Promise.all')
    }
    return messages.map((message) => {
      checkMessage(message)
      return { ...message, source }
    })
  }
}

/** The body has been read for its second argument. Who takes it from the request all the same finds it there. */
function unread(request: Request, body: Uint8Array): Request {
  const { method, headers, signal } = request
  return rememberMount(new Request(request.url, { method, headers, body, signal }), mountOf(request))
}

function checkMessage(message: unknown): asserts message is Incoming {
  if (!isPlain(message)) throw unfit(`verify answered ${nameOf(message)} in the place of a message`)
  const { id, type } = message
  if (id !== undefined && id !== null && typeof id !== 'string') throw unfit(`the id of a message was ${nameOf(id)}`)
  if (typeof type !== 'string') throw unfit(`the type of a message was ${nameOf(type)}`)
  const content = message['body'] ?? message['data']
  if (content === undefined) throw unfit('a message had neither body nor data')
  if (isPromise(content)) throw unfit('the body or the data of a message was a promise; wait for it')
}

function unfit(what: string): OnceboxError {
  return new OnceboxError(
    'MESSAGE_INVALID',
    `${what}; verify answers messages { id, type, body }, a Response, or false`,
  )
}

/** Made by no class, of whatever realm: a promise, an error or a list is no message. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** What it is, and nothing of what is in it. */
function nameOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1)
}

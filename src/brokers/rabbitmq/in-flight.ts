/**
 * What was published on a channel and is not confirmed yet. What no queue takes the broker sends back before it confirms
 * it, and does not say which publication it was. An id is one of its source only, so the mark is on the publication.
 */
import type { RabbitMessage } from './client.js'
import type { Publication } from './event.js'

export interface Unconfirmed {
  readonly publication: Publication
  /** No queue took it. */
  isReturned: boolean
}

export class InFlight {
  readonly #byId = new Map<string, Set<Unconfirmed>>()

  add(publication: Publication): Unconfirmed {
    const { messageId } = publication.properties
    const one = { publication, isReturned: false }
    const ofId = this.#byId.get(messageId) ?? new Set()
    this.#byId.set(messageId, ofId.add(one))
    return one
  }

  /** The broker has answered for it. */
  remove(one: Unconfirmed): void {
    const { messageId } = one.publication.properties
    const ofId = this.#byId.get(messageId)
    ofId?.delete(one)
    if (ofId?.size === 0) this.#byId.delete(messageId)
  }

  /** The broker has sent it back. */
  markReturned(message: RabbitMessage): void {
    const open = [...(this.#byId.get(message.properties.messageId as string) ?? [])].filter((one) => !one.isReturned)
    const own = open.find(({ publication }) => isSame(publication, message))
    // What the broker has changed on its way is one of them. Published twice is better than lost.
    for (const one of own ? [own] : open) one.isReturned = true
  }
}

/** All that an exchange routes by, and the body. */
function isSame({ routingKey, content, properties }: Publication, message: RabbitMessage): boolean {
  const headers = message.properties.headers ?? {}
  return (
    routingKey === message.fields.routingKey &&
    Object.entries(properties.headers).every(([name, value]) => headers[name] === value) &&
    content.equals(message.content)
  )
}

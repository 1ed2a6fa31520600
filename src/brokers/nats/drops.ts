/** Tells of messages that the server gives up: it says so on a subject of its own, and nowhere else. */
import { OnceboxError } from '../../errors.js'
import type { Reports } from '../run.js'
import type { Connection } from './client.js'
import type { ResolvedSource } from './options.js'

interface Advisory {
  readonly stream_seq?: number
  readonly deliveries?: number
}

/** Anybody may publish anything there. */
function readAdvisory(message: { json<T>(): T }): Advisory {
  try {
    return message.json<Advisory | null>() ?? {}
  } catch {
    return {}
  }
}

/** For as long as the connection is open. Without the right to listen nothing is told. */
export function watchDrops({ nc }: Connection, { stream, consumer }: ResolvedSource, { tellPassing }: Reports): void {
  nc.subscribe(`$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.${consumer}`, {
    callback(error, message) {
      const { stream_seq, deliveries } = error ? {} : readAdvisory(message)
      if (stream_seq === undefined) return
      const advice = 'set max_deliver of the consumer to -1'
      const what = `NATS delivers message ${stream_seq} of ${stream} no more, after ${deliveries} times; ${advice}`
      tellPassing(new OnceboxError('NOT_FOUND', what))
    },
  })
}

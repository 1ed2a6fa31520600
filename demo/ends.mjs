/**
 * The ends of the link, in the services' processes, as oncebox knows them: a Sink to publish to and a Source to consume
 * from. A real service has `rabbitmq(…)` or `kafka(…)` here; writing your own takes as little as this.
 *
 * A port is a channel to the link: `post(message)` and `listen(listener)`.
 */
import { EventEmitter } from 'node:events'

/** Where the order service's outbox publishes to. An answer of `undefined` says: this event is published. */
export function linkSink(port) {
  const waiting = new Map()
  let last = 0
  port.listen(({ confirm }) => {
    waiting.get(confirm)?.()
    waiting.delete(confirm)
  })
  return {
    name: 'link',
    async publish(batch) {
      const number = ++last
      const confirmed = new Promise((resolve) => waiting.set(number, resolve))
      port.post({
        publish: number,
        events: batch.map(({ id, source, type, key, data }) => ({ id, source, type, key, data })),
      })
      await confirmed
      return batch.map(() => undefined)
    },
    close: async () => {},
  }
}

/** Where a service's inbox takes its messages from. It acknowledges what `deliver` says may be forgotten, no sooner. */
export function linkSource(port) {
  let waiting = []
  let busy = Promise.resolve()
  let stopped = false
  return {
    async start(deliver) {
      const deliverAll = async () => {
        const batch = waiting
        waiting = []
        if (batch.length === 0) return
        const messages = batch.map(({ event, redelivered }) => ({ ...event, redelivered }))
        const outcomes = await deliver(messages).catch(() => batch.map(() => ({ ack: false })))
        batch.forEach(({ deliver: settle }, at) => port.post({ settle, ack: outcomes[at].ack }))
      }
      port.listen((message) => {
        if (message.deliver === undefined || stopped) return
        // What arrives while a batch is at work is the next batch.
        if (waiting.push(message) === 1) busy = busy.then(deliverAll)
      })
    },
    async stop() {
      stopped = true
      await busy
    },
  }
}

/** The channel to the process that started this one. It ends with it. */
export function parentPort() {
  process.on('disconnect', () => process.exit(0))
  return {
    post: (message) => process.connected && process.send(message),
    listen: (listener) => process.on('message', listener),
  }
}

/** The channel to a process that we started. */
export function childPort(child) {
  return {
    post: (message) => child.connected && child.send(message, () => {}),
    listen: (listener) => child.on('message', listener),
  }
}

/** Both ends of a channel within one process. */
export function portPair() {
  const [here, there] = [new EventEmitter(), new EventEmitter()]
  const end = (from, to) => ({
    post: (message) => setImmediate(() => to.emit('message', message)),
    listen: (listener) => from.on('message', listener),
  })
  return [end(here, there), end(there, here)]
}

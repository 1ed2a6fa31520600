/** A queue as a sink: opened when it is first used, closed when nothing is on its way any more. */
import { sleep } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import { createClosable, enoughOf } from '../send.js'
import type { PublishLimits, Sink } from '../sink.js'
import { isFifo, openQueue, sqsError, type Queue } from './client.js'
import type { Resolved } from './options.js'
import { publish } from './publish.js'

/** How long `close` waits for requests before it aborts them. */
const CLOSE_MS = 5_000

export function createSink(options: Resolved): Sink & { readonly name?: string } {
  const { queueUrl, mode, codec, timeoutMs, name } = options
  const context = { mode, codec, fifo: isFifo(queueUrl) }
  const aborts = new Set<AbortController>()
  let opening: Promise<Queue> | undefined

  const run = async (batch: readonly Message[], limits?: PublishLimits): ReturnType<Sink['publish']> => {
    opening ??= openQueue(options).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    // The time is that of the requests: to load the SDK takes its own.
    const queue = await opening
    const abort = new AbortController()
    const late = sqsError('Timeout', `SQS did not take the events in ${timeoutMs} ms`, false)
    const timer = setTimeout(() => abort.abort(late), timeoutMs)
    const end = (): void => abort.abort(limits?.signal.reason)
    limits?.signal.addEventListener('abort', end)
    if (limits?.signal.aborted) end()
    aborts.add(abort)
    const { signal } = abort
    const enough = enoughOf({ timeoutMs: Math.min(timeoutMs, limits?.timeoutMs ?? Infinity), signal })
    try {
      return await publish(queue, batch, context, { signal, enough })
    } finally {
      clearTimeout(timer)
      limits?.signal.removeEventListener('abort', end)
      aborts.delete(abort)
    }
  }

  return createClosable(name, run, async (finished) => {
    await sleep(CLOSE_MS, finished)
    for (const abort of aborts) abort.abort(new OnceboxError('STOPPED', 'the sink was closed'))
    await finished
    // A box that is started again opens it again.
    const queue = await opening?.catch(() => undefined)
    opening = undefined
    queue?.close()
  })
}

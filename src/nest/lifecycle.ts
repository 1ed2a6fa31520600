/** What Nest's hooks do: consumers are declared and the box starts at bootstrap, and it stops before anything is destroyed. */
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common'
import { sleep } from '../backoff.js'
import type { Box } from '../box.js'
import type { Sink } from '../brokers/sink.js'
import { DAY_MS } from '../figures.js'
import type { MessageMap } from '../message.js'
import { checkProvided, discover, type Where } from './discover.js'
import { handlersOf, type Through } from './handlers.js'
import type { ReadOptions } from './options.js'
import type { BoxName } from './tokens.js'

export interface Parts extends Where, Through {
  readonly name: BoxName | undefined
  readonly box: Box<MessageMap, unknown>
  readonly options: ReadOptions['lifecycle']
}

export function createHooks(parts: Parts): OnApplicationBootstrap & OnModuleDestroy {
  const { name, box, options } = parts
  let closing = false
  let booting: Promise<void> | undefined

  const boot = async (): Promise<void> => {
    for (const consumer of discover(parts, name)) {
      box.consumer(consumer.mark.name, handlersOf(parts, consumer), consumer.mark.options)
    }
    await options.setUp?.(isTestBox(box) ? withoutSinks(box) : box)
    if (isTestBox(box)) return
    if (options.start && options.unprovided === 'refuse') checkProvided(parts, name)
    if (options.migrate && !closing) await box.migrate()
    if (options.start && !closing) await box.start()
  }

  return {
    onApplicationBootstrap: () => (booting = boot()),
    async onModuleDestroy() {
      closing = true
      const { stopTimeoutMs: timeoutMs } = options
      const booted = booting?.catch(() => undefined) ?? Promise.resolve()
      // A signal may come while the app starts, and what comes next may be the end of the pool.
      await Promise.all([box.stop({ timeoutMs }), sleep(Math.min(timeoutMs, DAY_MS), booted)])
    },
  }
}

/** A test drains its box when it is ready; workers beside it would take messages while the test looks. */
function isTestBox(box: object): boolean {
  return 'crashAt' in box
}

/** A drain publishes, and what a test sends is not for the brokers of the app. Whoever wants a sink there attaches one to the test box. */
function withoutSinks(box: Parts['box']): Parts['box'] {
  return Object.create(box, { to: { value: (sink: Sink) => sink } }) as Parts['box']
}

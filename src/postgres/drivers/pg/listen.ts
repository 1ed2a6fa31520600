/**
 * LISTEN on a connection of its own, opened again for ever until unsubscribed. Notifications sent in between are
 * lost, so every connect wakes too.
 */
import { silent, sqlState } from '../../errors.js'
import { ignore } from '../watch.js'
import { hangUp, unlessWithin } from './cancel.js'
import { type Client, dedicated, ask, type Pool } from './client.js'

const FIRST_MS = 100
const LONGEST_MS = 10_000
/** How often an idle listener is asked whether it is alive, and how long it may take to answer, also at first. */
const PROBE_EVERY_MS = 15_000
const PROBE_MS = 5_000

export async function listenOn(pool: Pool, channel: string, wake: () => void): Promise<() => Promise<void>> {
  const text = `LISTEN "${channel.replaceAll('"', '""')}"`
  let stopped = false
  let failures = 0
  let client: Client | undefined
  let timer: NodeJS.Timeout | undefined

  async function open(): Promise<void> {
    let opened: Client | undefined
    try {
      // Keep-alive: nothing else would show that an idle connection is dead.
      opened = await dedicated(pool, { keepAlive: true, keepAliveInitialDelayMillis: 10_000 })
      if (opened === undefined) return
      const here = opened
      here.on('end', () => lost(here))
      here.on('notification', (message: { channel: string }) => {
        if (message.channel === channel && !stopped) wake()
      })
      client = here
      if (stopped) return close(here)
      await askInTime(here, text)
      failures = 0
      if (!stopped) wake()
      probe(here)
    } catch (error) {
      if (opened) close(opened)
      // CockroachDB and others: not supported, and polling does without.
      if (['0A000', '42601'].includes(sqlState(error) ?? '')) return
      later()
    }
  }

  /** A listener sends nothing, so nothing else would tell that its packets vanish. */
  function probe(which: Client): void {
    const timer = setTimeout(() => {
      if (client !== which) return
      // Given up by a limit of the pool's too, it is not known to be alive.
      askInTime(which, 'select 1').then(
        () => probe(which),
        (error: Error) => hangUp(which, error),
      )
    }, PROBE_EVERY_MS)
    timer.unref()
  }

  function lost(which: Client): void {
    if (client !== which) return
    client = undefined
    later()
  }

  function later(): void {
    if (stopped || timer !== undefined) return
    const ceiling = Math.min(FIRST_MS * 2 ** failures, LONGEST_MS)
    failures += 1
    timer = setTimeout(
      () => {
        timer = undefined
        void open()
      },
      ceiling / 2 + (Math.random() * ceiling) / 2,
    )
    timer.unref()
  }

  function close(which: Client): void {
    if (client === which) client = undefined
    which.end?.().catch(ignore)
  }

  await open()
  return async () => {
    stopped = true
    clearTimeout(timer)
    const open = client
    client = undefined
    await open?.end?.().catch(ignore)
  }
}

/** What gets no answer in time takes its connection with it. */
async function askInTime(client: Client, text: string): Promise<void> {
  const answered = unlessWithin(PROBE_MS, () => hangUp(client, silent(PROBE_MS)))
  await ask(client, { text }).finally(answered)
}

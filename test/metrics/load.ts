/** A box under load in which everything happens that there is a metric of. */
import { Reject, type Incoming, type Sink } from 'oncebox'
import type { Bench } from '../inbox/fixture.js'

export interface Load {
  stop(): Promise<void>
}

export async function startLoad(box: Bench): Promise<Load> {
  const sink: Sink = {
    publish: (batch) =>
      Promise.resolve(
        batch.map(({ type }) => (type === 'bad' ? { error: new Error('never'), retry: false } : undefined)),
      ),
    close: async () => {},
  }
  box.to(sink, { name: 'broker' })
  box.consumer('orders', {
    async placed({ id }, { send }) {
      if (id.endsWith('7')) throw new Reject('no')
      await send(id.endsWith('3') ? 'bad' : 'done', {})
    },
  })
  box.consumer('pays', { paid: (_, { effect }) => effect('pay', () => 1).then(() => undefined) })
  await box.start()
  let running = true
  const work = (async () => {
    for (let round = 0; running; round++) {
      const batch: Incoming[] = Array.from({ length: 20 }, (_, n) => ({
        ...{ id: `${round}-${n}`, type: 'placed', data: {} },
      }))
      await box.receive([...batch, { id: `${round}`, type: 'paid', data: {} }])
      // Copies, a conflict, and what nobody wants.
      await box.receive(batch.slice(0, 5))
      await box.receive([
        { id: `${round}-1`, type: 'placed', data: { other: true } },
        { id: `${round}`, type: 'stray', data: {} },
      ])
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })()
  return {
    async stop() {
      running = false
      await work
      await box.stop()
    },
  }
}

/** A worker: runs the boxes that it is told to, until it is told to stop. */
import { connect, openShards } from './shards.mjs'

/** @type {{ placement: string[], run: number[], entries?: string }} */
const { placement, run, entries } = JSON.parse(process.env['SCALE_WORKER'] ?? '{}')

const shards = openShards(placement, entries === undefined ? {} : { entries })
connect(shards)
const own = run.flatMap((shard) => shards.boxes[shard] ?? [])
await Promise.all(own.map((box) => box.start()))
process.send?.({ event: 'started' })

let stopping = false
for (const signal of /** @type {const} */ (['SIGTERM', 'disconnect'])) {
  process.on(signal, async () => {
    if (stopping) return
    stopping = true
    await Promise.all(own.map((box) => box.stop()))
    await shards.close()
    process.exit(0)
  })
}

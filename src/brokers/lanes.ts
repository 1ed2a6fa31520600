import type { Message } from '../message.js'

/** Positions in the batch: those of one key in a row, each without a key alone. */
export function lanesOf(batch: readonly Message[]): number[][] {
  const lanes: number[][] = []
  const byKey = new Map<string, number[]>()
  batch.forEach(({ key }, at) => {
    const lane = key === undefined ? undefined : byKey.get(key)
    if (lane) return void lane.push(at)
    const fresh = [at]
    lanes.push(fresh)
    if (key !== undefined) byKey.set(key, fresh)
  })
  return lanes
}

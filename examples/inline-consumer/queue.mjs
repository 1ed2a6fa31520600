/**
 * A queue in memory that behaves like a broker on a bad day: what is not acknowledged is delivered again, and every
 * third acknowledgement gets lost on its way.
 */

/** @typedef {{ id: string, type: string, body: string }} Letter */

export function createQueue() {
  /** @type {{ letter: Letter, deliveries: number }[]} */
  const waiting = []
  let acknowledgements = 0
  /** Handed out, and not settled. */
  let unsettled = 0

  return {
    /** @param {Letter} letter */
    publish: (letter) => void waiting.push({ letter, deliveries: 0 }),
    get isEmpty() {
      return waiting.length === 0 && unsettled === 0
    },
    /** The next message, with what its receiver can do about it. */
    take() {
      const next = waiting.shift()
      if (!next) return undefined
      next.deliveries += 1
      unsettled += 1
      return {
        letter: next.letter,
        redelivered: next.deliveries > 1,
        ack() {
          unsettled -= 1
          acknowledgements += 1
          if (acknowledgements % 3 === 0) waiting.push(next)
        },
        nack() {
          unsettled -= 1
          waiting.push(next)
        },
      }
    },
  }
}

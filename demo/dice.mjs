/** Chance that can be repeated: what is thrown depends on the seed and on what it is thrown for, and on nothing else. */

/** Answers with a function that throws numbers in [0, 1). */
export function dice(seed, ...about) {
  let state = hash([seed, ...about].join(' '))
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** FNV-1a */
function hash(text) {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value
}

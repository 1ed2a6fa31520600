/** Travel: what goes along with a statement is on its way before the server can answer. */

/** Of a slow line, in characters: 2 Mbit/s. */
const CARRIED_IN_A_MS = 250

/** How long a text, or bytes, may take to get to the server, in ms. */
export function travelMs(carried: string | ArrayBufferView): number {
  return Math.floor((typeof carried === 'string' ? carried.length : carried.byteLength) / CARRIED_IN_A_MS)
}

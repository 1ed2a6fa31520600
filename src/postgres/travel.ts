/** Travel: what goes along with a statement is on its way before the server can answer. */

/** Of a slow line, in characters: 2 Mbit/s. */
const CARRIED_IN_A_MS = 250

/** How long a text may take to get to the server, in ms. */
export function travelMs(text: string): number {
  return Math.floor(text.length / CARRIED_IN_A_MS)
}

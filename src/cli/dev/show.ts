/** What happened, as a line. Ids, types and errors are plain strings, which the output escapes. */
import { escapedJson } from '../../escape.js'
import type { Happening } from '../../tap.js'
import { paint, type Style, type Text } from '../output/text.js'

const STYLES: Readonly<Record<Happening['what'], Style>> = {
  received: 'cyan',
  duplicate: 'dim',
  quarantined: 'yellow',
  handled: 'green',
  failed: 'yellow',
  dead: 'red',
  sent: 'cyan',
}

/** `12:00:01  handled      order.placed order-1 by reserve-stock in 12 ms` */
export function showHappening(happening: Happening, at: Date): Text[] {
  const { what, id, type, consumer, ms, attempt, error, data } = happening
  return [
    paint('dim', at.toTimeString().slice(0, 8)),
    '  ',
    paint(STYLES[what], what.padEnd(11)),
    `  ${type} `,
    paint('bold', id),
    consumer === undefined ? '' : ` ${what === 'received' ? 'for' : 'by'} ${consumer}`,
    ms === undefined ? '' : ` in ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`,
    attempt === undefined || (attempt < 2 && what === 'handled') ? '' : ` (attempt ${attempt})`,
    error === undefined ? '' : `: ${error}`,
    data === undefined ? '' : ` ${escapedJson(data)}`,
  ]
}

/** A page that is drawn again and again, on a terminal's other screen: what was there before comes back at the end. */
import type { Stream } from '../io.js'

export interface Screen {
  draw(lines: readonly string[]): void
  /** May be called again. A process that ends without it closes the screen, too. */
  close(): void
}

export function openScreen(stream: Stream): Screen {
  // The other screen, without a cursor.
  stream.write('\x1b[?1049h\x1b[?25l')
  let isOpen = true
  const close = (): void => {
    if (!isOpen) return
    isOpen = false
    process.off('exit', close)
    stream.write('\x1b[?25h\x1b[?1049l')
  }
  process.once('exit', close)
  return {
    draw(lines) {
      if (!isOpen) return
      const room = Math.max(1, (stream.rows ?? 24) - 1)
      const shown = lines.length > room ? [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`] : lines
      stream.write(`\x1b[H${shown.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`)
    },
    close,
  }
}

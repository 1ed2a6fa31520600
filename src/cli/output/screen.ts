/** A page that is drawn again and again, on a terminal's other screen: what was there before comes back at the end. */
import type { Stream } from '../io.js'

export interface Screen {
  draw(lines: readonly string[]): void
  close(): void
}

export function openScreen(stream: Stream): Screen {
  // The other screen, without a cursor.
  stream.write('\x1b[?1049h\x1b[?25l')
  return {
    draw(lines) {
      const room = Math.max(1, (stream.rows ?? 24) - 1)
      const shown = lines.length > room ? [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`] : lines
      stream.write(`\x1b[H${shown.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`)
    },
    close: () => void stream.write('\x1b[?25h\x1b[?1049l'),
  }
}

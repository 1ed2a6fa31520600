/** How far a command is: a bar on a terminal, with the rate and the time left; elsewhere a line for every tenth. On stderr. */
import type { Stream } from '../io.js'
import { showCount, showDuration } from './duration.js'
import { cut } from './width.js'

export interface Progress {
  /** So many are done, of all. */
  at(done: number): void
  /** Takes the bar away. */
  end(): void
}

/** A terminal need not be told more often. */
const EVERY_MS = 100

export function createProgress(stream: Stream, what: string, total: number): Progress {
  const started = performance.now()
  return stream.isTTY ? bar(stream, what, total, started) : lines(stream, what, total, started)
}

function bar(stream: Stream, what: string, total: number, started: number): Progress {
  let drawn = -Infinity
  return {
    at(done) {
      const now = performance.now()
      if (now - drawn < EVERY_MS && done < total) return
      drawn = now
      const columns = stream.columns ?? 80
      const tail = ` ${percent(done, total)} %  ${facts(done, total, now - started)}`
      const room = Math.max(5, Math.min(30, columns - tail.length - what.length - 4))
      const full = total === 0 ? room : Math.min(room, Math.round((room * done) / total))
      const line = `${what} [${'#'.repeat(full)}${'.'.repeat(room - full)}]${tail}`
      stream.write(`\r\x1b[2K${cut(line, columns - 1)}`)
    },
    end() {
      if (drawn !== -Infinity) stream.write('\r\x1b[2K')
    },
  }
}

function lines(stream: Stream, what: string, total: number, started: number): Progress {
  let told = 0
  return {
    at(done) {
      const tenth = total === 0 ? 10 : Math.min(10, Math.floor((done * 10) / total))
      if (tenth <= told) return
      told = tenth
      stream.write(`${what} ${tenth * 10} %  ${facts(done, total, performance.now() - started)}\n`)
    },
    end() {},
  }
}

function percent(done: number, total: number): number {
  return total === 0 ? 100 : Math.min(100, Math.floor((done * 100) / total))
}

function facts(done: number, total: number, ms: number): string {
  const perSecond = ms > 0 ? (done * 1_000) / ms : 0
  const rate = perSecond >= 10 ? showCount(Math.round(perSecond)) : perSecond.toFixed(1)
  const left = done > 0 && done < total ? `, ${showDuration(((total - done) * ms) / done)} left` : ''
  return `${showCount(done)} of ${showCount(total)}, ${rate}/s${left}`
}

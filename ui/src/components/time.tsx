/** A time: the reader's, with UTC on hover. */
import { inUtc, minute, moment } from '../logic/when.js'
import { span } from '../logic/format.js'
import { clock, now } from '../now.js'

export function Time({ at, short = false }: { at: string; short?: boolean }) {
  return (
    <time dateTime={at} title={inUtc(at)}>
      {(short ? minute : moment)(at, now.value, clock.value)}
    </time>
  )
}

/** "since 14:07 · 25 min" */
export function Since({ at, word = 'since' }: { at: string; word?: string }) {
  return (
    <>
      {word} <Time at={at} short /> · {span(Math.max(0, now.value - Date.parse(at)))}
    </>
  )
}

/** "25 min ago" */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={inUtc(at)}>
      {span(Math.max(0, now.value - Date.parse(at)))} ago
    </time>
  )
}

/** " 25 min", behind a word such as paused. */
export function For({ at }: { at: string }) {
  return (
    <time dateTime={at} title={`since ${minute(at, now.value, clock.value)} \u00b7 ${inUtc(at)}`}>
      {` ${span(Math.max(0, now.value - Date.parse(at)))}`}
    </time>
  )
}

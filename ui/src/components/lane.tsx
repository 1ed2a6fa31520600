/** A lane: the message in front, up to eleven that wait behind it, and how many more. */
import { about } from '../logic/format.js'

const MOST = 11
const STEP = 13
const FIRST = 19.5

const HEAD = { dead: 'head', quarantined: 'head-q', processing: 'head-p' } as const

export function Lane({
  waiting,
  atLeast,
  state,
}: {
  waiting: number
  atLeast: boolean
  /** Of the one in front; `pending`: none of them runs. */
  state: 'dead' | 'quarantined' | 'processing' | 'pending'
}) {
  const boxes = Math.min(waiting, MOST)
  const wait = `${about(waiting, { atLeast })} ${waiting === 1 ? 'waits' : 'wait'}`
  const words = state === 'pending' ? wait : `one ${state === 'processing' ? 'runs' : 'stopped'}, ${wait} behind it`
  return (
    <svg class="lane" viewBox="0 0 220 16" preserveAspectRatio="xMinYMid meet" role="img" aria-label={words}>
      {state !== 'pending' && <rect class={HEAD[state]} x="0" y="1" width="14" height="14" rx="3" />}
      {(state === 'dead' || state === 'quarantined') && <path class="gl" d="M4.5 5.5l5 5M9.5 5.5l-5 5" />}
      {Array.from({ length: boxes }, (_, at) => (
        <rect class="w" key={at} x={FIRST + at * STEP} y="2.5" width="9" height="11" rx="2" />
      ))}
      {waiting > boxes && (
        <text x={FIRST + boxes * STEP + 2.5} y="12">
          +{about(waiting - boxes, { atLeast })}
        </text>
      )}
    </svg>
  )
}

/** How far a job is, in three colours: handled, failed again, and still to run. */
import type { Job } from '../../api.js'
import { progressOf } from '../../logic/bulk.js'
import { meterWords } from '../../logic/bulk-words.js'

const WIDTH = 1_000

export function Meter({ job }: { job: Job }) {
  const { total, handled, failedAgain, changed } = progressOf(job)
  const wide = (n: number): number => (total === 0 ? 0 : Math.round((n / total) * WIDTH))
  const [first, second, third] = [wide(handled), wide(failedAgain), wide(changed)]
  return (
    <svg class="meter" viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" role="img" aria-label={meterWords(job)}>
      <rect class="m0" width={WIDTH} height="10" />
      <rect class="m1" width={first} height="10" />
      <rect class="m2" x={first} width={second} height="10" />
      <rect class="m3" x={first + second} width={third} height="10" />
    </svg>
  )
}

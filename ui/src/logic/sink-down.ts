/** Whether a sink is down, and why. Apart from the words of the outbox, which the first page does without. */
import type { Finding, SinkStatus } from '../../../src/dashboard/answers/index.js'
import { withCode } from './verdict.js'

/** Events wait for another try, or the process says of its relay that it does not get through. */
export function isDown({ name, error, ready, delayed }: SinkStatus, findings: readonly Finding[] = []): boolean {
  return (error && ready + delayed > 0) || told(name, findings) !== undefined
}

/** What it failed with last, as far as it may be seen: of an event, of the whole sink, or of a dead event. */
export function lastError(
  { name, error, deadError }: SinkStatus,
  findings: readonly Finding[] = [],
): string | undefined {
  const down = !error && told(name, findings)?.slice(`sink ${name} is down: `.length)
  const last = error ?? deadError
  return down || (last && (last.message === undefined ? withCode(last) : `${last.name}: ${last.message}`))
}

function told(name: string, findings: readonly Finding[]): string | undefined {
  return findings.find(({ code, text }) => code === 'unhealthy' && text?.startsWith(`sink ${name} is down`))?.text
}

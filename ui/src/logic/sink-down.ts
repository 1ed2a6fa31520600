/** Whether a sink is down, and why. Apart from the words of the outbox, which the first page does without. */
import type { Finding, SinkStatus } from '../../../src/dashboard/answers/index.js'
import { withCode } from './verdict.js'

/** Events wait for another try, or the process says of its relay that it does not get through. */
export function isDown({ name, error, ready, delayed }: SinkStatus, findings: readonly Finding[] = []): boolean {
  if (error && ready + delayed > 0) return true
  return name !== '' && findings.some(({ code, text }) => code === 'unhealthy' && text?.startsWith(`sink ${name} is down`)) // prettier-ignore
}

/** What it failed with last, as far as it may be seen: of an event, of the whole sink, or of a dead event. */
export function lastError(
  { name, error, deadError }: SinkStatus,
  findings: readonly Finding[] = [],
): string | undefined {
  const down = `sink ${name} is down: `
  const text = findings.find((one) => one.code === 'unhealthy' && one.text?.startsWith(down))?.text
  if (text !== undefined && !error) return text.slice(down.length)
  const last = error ?? deadError
  return last && (last.message === undefined ? withCode(last) : `${last.name}: ${last.message}`)
}

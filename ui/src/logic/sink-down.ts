/** Whether a sink is down, and why. Apart from the words of the outbox, which the first page does without. */
import type { Finding, SinkStatus } from '../../../src/dashboard/answers/index.js'
import { withCode } from './verdict.js'

/** Events wait for another try, or the process says of its relay that it does not get through. */
export function isDown({ name, error, ready, delayed }: SinkStatus, findings: readonly Finding[] = []): boolean {
  if (error && ready + delayed > 0) return true
  return name !== '' && findings.some(({ code, text }) => code === 'unhealthy' && text?.startsWith(`sink ${name} is down`)) // prettier-ignore
}

/** What it failed with last, as far as it may be seen: of an event, or of the whole sink. */
export function lastError({ name, error }: SinkStatus, findings: readonly Finding[] = []): string | undefined {
  if (error) return error.message === undefined ? withCode(error) : `${error.name}: ${error.message}`
  const down = `sink ${name} is down: `
  return findings.find(({ code, text }) => code === 'unhealthy' && text?.startsWith(down))?.text?.slice(down.length)
}

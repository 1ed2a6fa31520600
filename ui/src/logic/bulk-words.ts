/** What the bulk dialog says, and the toast that stays when it is left. */
import type { Counted, Job } from '../../../src/dashboard/answers/index.js'
import { leftMs, progressOf, type Pace, type Verb } from './bulk.js'
import { count, duration, percent, plural } from './format.js'

const DO: Readonly<Record<Verb, string>> = { retry: 'Retry', discard: 'Discard' }
const DOING: Readonly<Record<Verb, string>> = { retry: 'Retrying', discard: 'Discarding' }
const DONE: Readonly<Record<Verb, string>> = { retry: 'Retried', discard: 'Discarded' }

/** Retry 1 204 dead messages? `where`: such as "in front". */
export function question(verb: Verb, { count, states }: Counted, where = ''): string {
  const [state, ...more] = Object.entries(states).filter(([, n]) => n > 0).map(([name]) => name) // prettier-ignore
  const one =
    more.length === 0 && state !== undefined && where === '' && state !== 'pending' ? `${state} message` : 'message'
  return `${DO[verb]} ${plural(count, one)}${where === '' ? '' : ` ${where}`}?`
}

/** Retry 1 204 messages */
export function confirmWords(verb: Verb, messages: number): string {
  return `${DO[verb]} ${plural(messages, 'message')}`
}

/** Counted 2 s ago, exact. */
export function countedWords(verb: Verb, ageMs: number): string {
  const ago = ageMs < 1_500 ? 'Counted now' : `Counted ${roughly(ageMs)} ago`
  const later =
    verb === 'retry'
      ? 'Messages that die after the start are not included.'
      : 'Messages that arrive after the start are not included.'
  return `${ago}, exact. ${later}`
}

export function paceWords(pace: Pace): string {
  return pace === 'unlimited' ? 'No limit' : `${count(pace)}/s`
}

/** About 24 s. The oldest first, and in order within each key. */
export function timeWords(messages: number, pace: Pace): string {
  const order = 'The oldest first, and in order within each key.'
  if (pace === 'unlimited') return `As fast as it goes. ${order}`
  const ms = (messages / pace) * 1_000
  return `${ms <= 1_000 ? 'At once.' : `About ${roughly(ms)}.`} ${order}`
}

/** What comes of it, one sentence each. */
export function consequences(verb: Verb, { states }: Counted): readonly string[] {
  if (verb === 'discard') return ['They will not run. You can retry them until retention deletes them.']
  const handled = states.handled ?? 0
  const said = ['Handlers run again, with all their attempts.', 'Effects on record are replayed, not called again.']
  return handled > 0
    ? [
        `${plural(handled, 'message was', 'messages were')} handled: ${handled === 1 ? 'its handler runs' : 'their handlers run'} a second time.`,
        ...said,
      ]
    : said
}

/** There were 1 204 when you looked, and there are 1 210 now. Nothing was changed. */
export function changedWords(before: number, now: number): string {
  return `There were ${count(before)} when you looked, and there are ${count(now)} now. Nothing was changed yet.`
}

/** The head of a job. */
export function jobTitle(job: Job): string {
  const { verb, state, total } = job
  const touched = count(job.done + job.skipped)
  if (state === 'running') return DOING[verb]
  if (state === 'done') return `${DONE[verb]} ${plural(job.done, 'message')}`
  const how = { cancelled: 'Stopped', stopped: 'Stopped by itself', failed: 'Broke off' }[state]
  return `${how} at ${touched} of ${count(total)}`
}

/** 50/s · about 12 s left · started by ines@acme.example */
export function pulseWords(job: Job): string {
  const left = leftMs(job)
  return [
    job.perSecond === undefined ? 'no limit' : `${count(job.perSecond)}/s`,
    ...(left === undefined ? [] : [`about ${roughly(left)} left`]),
    ...(job.by === undefined ? [] : [`started by ${job.by}`]),
  ].join(' · ')
}

/** What an ended job leaves behind. */
export function afterWords({ verb, state, problem, ...job }: Job): string {
  const stays = verb === 'retry' ? 'What was retried stays retried' : 'What was discarded stays discarded'
  const { untouched, skipped } = progressOf({ verb, state, ...job })
  const alone =
    skipped > 0
      ? ` ${plural(skipped, 'message was', 'messages were')} left alone: somebody else has changed ${skipped === 1 ? 'it' : 'them'} meanwhile.`
      : ''
  if (state === 'done') return verb === 'retry' ? `All were made pending again.${alone}` : `They will not run.${alone}`
  const rest = untouched > 0 ? '; the rest is as it was.' : '.'
  if (state === 'stopped')
    return `More than half of the last 50 failed again: the cause is still there. ${stays}${rest}${alone}`
  if (state === 'failed') return `${problem ?? 'It broke off'}. ${stays}${rest}${alone}`
  return `${stays}${rest}${alone}`
}

/** What matches is counted again, and what failed again matches as well. */
export function goOnWords(job: Job): string {
  const { untouched, failedAgain } = progressOf(job)
  if (failedAgain === 0) return `${DO[job.verb]} the other ${count(untouched)}…`
  return `${DO[job.verb]} ${count(untouched + failedAgain)}, with those that failed again…`
}

/** For whoever left the dialog: Retrying 612 of 1 204 */
export function toastWords(job: Job): { readonly text: string; readonly detail: string } {
  const failed = job.failedAgain > 0 ? ` · ${count(job.failedAgain)} failed again` : ''
  if (job.state !== 'running') return { text: jobTitle(job), detail: `${count(job.handled)} handled${failed}` }
  return {
    text: `${DOING[job.verb]} ${count(job.done)} of ${count(job.total)}`,
    detail: `${pulseWords({ ...job, by: undefined })}${failed}`,
  }
}

/** 22 · 3.8 % */
export function failedWords({ failedAgain, handled }: Job): string {
  const ran = failedAgain + handled
  return failedAgain === 0 ? '0' : `${count(failedAgain)} · ${percent(failedAgain, ran)}`
}

/** For a screen reader, and for those who cannot tell the colours apart. */
export function meterWords(job: Job): string {
  const { total, handled, failedAgain, changed, untouched } = progressOf(job)
  const parts =
    job.verb === 'retry'
      ? [`${count(handled)} handled`, `${count(failedAgain)} failed again`, `${count(changed)} to run`]
      : [`${count(changed)} discarded`]
  return `${count(job.done)} of ${count(total)}: ${[...parts, `${count(untouched)} not touched`].join(', ')}`
}

/** The line that the audit has of it. */
export function auditLine({ verb, done, total, reason }: Job): string {
  return [verb, done === total ? plural(done, 'message') : `${count(done)} of ${count(total)}`, ...(reason === undefined ? [] : [reason])].join(' · ') // prettier-ignore
}

/** Whole seconds: what is about does not count tenths. */
function roughly(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000))
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1_000)
}

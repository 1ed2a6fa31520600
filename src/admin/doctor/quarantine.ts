/** The quarantine: what is in it, how full it is, and messages that came later than anybody remembers. */
import { DEFAULT_RETAIN_MS } from '../../figures.js'
import { LOOK_QUARANTINE, LOOK_QUARANTINE_PRODUCERS, type QuarantineFacts } from '../../postgres/sql/doctor-inbox.js'
import { QUARANTINE_ACCOUNTS } from '../../postgres/sql/quarantine.js'
import { CONSUMERS } from '../../postgres/sql/retain.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { counted, quoted, span, verb } from './words.js'

/** What a source has in quarantine, where that is nearly all that it may have. */
interface Account {
  readonly via: string
  readonly messages: number
  readonly bytes: number
  readonly maxRows: number
  readonly maxBytes: number
  /** The share of it that is used. */
  readonly used: number
  /** Those that its messages name as their source, with the most messages first. */
  readonly producers: readonly string[]
}

interface Facts {
  readonly kinds: readonly QuarantineFacts[]
  readonly accounts: readonly Account[]
  readonly retainMs: ReadonlyMap<string, number>
}

/** What a retry cannot mend. */
const NEXT: Readonly<Record<string, string>> = {
  unmapped: 'mend map, hand in what it makes of them with box.receive, and admin.discard',
  conflict: 'hand in what is to be handled under another id with box.receive, and admin.discard',
}

const QUARANTINED = check<Facts>({
  code: 'messages-quarantined',
  severity: 'warning',
  why: 'These messages could not be handled as they came, and were acknowledged: nobody sends them again. They stay until a person decides, or as long as their source keeps them (from(source, { quarantine: { retainMs } }), 30 days for what is not allowed), if that is said here.',
  find: ({ kinds }, { limits }) =>
    kinds
      .filter(({ count }) => count > 0)
      .map(({ consumer, reason, count, oldestMs, deletedInMs }) => ({
        // What a source may not send says something of that source alone.
        severity: oldestMs! > limits.deadMs && reason !== 'not-allowed' ? ('warning' as const) : ('note' as const),
        what: `${counted(count, 'message')} ${consumer === '' ? 'that reached no consumer' : `of consumer ${consumer}`} ${verb(count, 'is', 'are')} in quarantine as ${reason}, the oldest for ${span(oldestMs!)}${deletedInMs === null ? '' : `; the first is deleted ${deletedInMs > 0 ? `in ${span(deletedInMs)}` : 'soon'}, whether anybody has looked at it or not`}`,
        figures: {
          consumer,
          reason,
          messages: count,
          oldestMs: oldestMs!,
          ...(deletedInMs !== null && { deletedInMs }),
        },
        fix: `await box.admin.messages({ consumer: ${quoted(consumer)}, reason: ${quoted(reason)} })   // then ${NEXT[reason] ?? 'admin.retry or admin.discard'}`,
      })),
})

const NEARLY = 0.8

/** So many are named: a sender may call itself differently in each message. */
const NAMED = 5

const FULL = check<Facts>({
  code: 'quarantine-full',
  severity: 'warning',
  why: 'A source whose part of the quarantine is full is told to come again with everything that cannot be handled, until there is room.',
  find: ({ accounts }) =>
    accounts.map(({ via, used, producers, ...figures }) => ({
      ...(used >= 1 && { severity: 'serious' as const }),
      what: `the quarantine of source ${via} is ${Math.round(used * 100)} % full`,
      figures: { source: via, ...figures, producers: JSON.stringify(producers) },
      fix: makeRoom(via, producers),
    })),
})

/** Messages are found by what they name as their source, and not by the source of the box that they came through. */
function makeRoom(via: string, producers: readonly string[]): string {
  const [one, ...others] = producers.map(quoted)
  const discard = `await box.admin.discard({ source${others.length > 0 ? '' : `: ${one}`}, state: 'quarantined' }, { reason: 'looked at' })`
  const instead = '// or retry what can be handled now'
  if (one === undefined) {
    return `await box.admin.messages({ state: 'quarantined' })   // then admin.retry or admin.discard those that came through ${quoted(via)}`
  }
  if (others.length === 0) return `${discard}   ${instead}`
  return `for (const source of [${[one, ...others].join(', ')}]) ${discard}   ${instead}`
}

const HORIZON = check<Facts>({
  code: 'horizon-short',
  severity: 'warning',
  why: 'Messages come later than the consumer remembers what it has handled. They may be new or copies: nobody can tell, so they are quarantined.',
  find: ({ kinds, retainMs }) =>
    kinds
      .filter(({ reason, envelopes }) => reason === 'too-old' && envelopes !== null)
      .flatMap(({ consumer, envelopes }) => {
        const ages = envelopes!.flatMap(({ receivedMs, envelope }) => ageOf(receivedMs, envelope))
        const oldestMs = Math.max(0, ...ages)
        const retained = retainMs.get(consumer) ?? DEFAULT_RETAIN_MS
        const wanted = Math.ceil((oldestMs * 1.5) / 3_600_000) * 3_600_000
        return [
          {
            what: `in the last week ${envelopes!.length >= 100 ? '100 or more' : envelopes!.length} messages of consumer ${consumer} were too old for its horizon of ${span(retained)}, the oldest by its own time ${span(oldestMs)}`,
            figures: { consumer, messages: envelopes!.length, oldestMs, retainMs: retained },
            fix: `box.consumer(${quoted(consumer)}, …, { retainMs: ${Math.max(wanted, retained)} })   // if such delays are to be expected; else look for what held them up`,
          },
        ]
      }),
})

export const QUARANTINE = family('the quarantine', readQuarantine, [QUARANTINED, FULL, HORIZON])

/** How old a message was when it came, by its own time; nothing if it has none. */
function ageOf(receivedMs: number, envelope: string | null): number[] {
  try {
    const { time } = JSON.parse(envelope ?? '{}') as { time?: string }
    const age = receivedMs - Date.parse(time ?? '')
    return Number.isFinite(age) ? [age] : []
  } catch {
    return []
  }
}

async function readQuarantine(look: Look): Promise<Facts> {
  const { ask, consumers } = look
  const kinds = (await ask(LOOK_QUARANTINE, null)).map(({ facts }) => readJson(facts))
  const accounts = await readAccounts(look)
  const retain = kinds.some(({ reason }) => reason === 'too-old') ? await ask(CONSUMERS, null) : []
  return {
    kinds,
    accounts,
    retainMs: new Map([
      ...retain.map(({ name, retain_ms }) => [name, Number(retain_ms ?? DEFAULT_RETAIN_MS)] as const),
      ...consumers.map(({ name, options }) => [name, options.retainMs] as const),
    ]),
  }
}

async function readAccounts({ ask, runtime: { origins } }: Look): Promise<Account[]> {
  const limited = origins.flatMap(({ account, quota }) => (account !== undefined && quota ? { account, quota } : []))
  const counts = await ask(
    QUARANTINE_ACCOUNTS,
    limited.map(({ account }) => account),
  )
  const full = counts.flatMap(({ via, ...counted }) => {
    const { maxRows, maxBytes } = limited.find(({ account }) => account === via)!.quota
    const [messages, bytes] = [Number(counted.messages), Number(counted.bytes)]
    const used = Math.max(messages / maxRows, bytes / maxBytes)
    return used < NEARLY ? [] : [{ via, messages, bytes, maxRows, maxBytes, used }]
  })
  if (full.length === 0) return []
  const found = await ask(LOOK_QUARANTINE_PRODUCERS, { accounts: full.map(({ via }) => via), most: NAMED })
  return full.map((one) => ({
    ...one,
    producers: found.filter(({ via }) => via === one.via).map(({ source }) => source),
  }))
}

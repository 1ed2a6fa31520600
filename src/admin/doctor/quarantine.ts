/** The quarantine: what is in it, how full it is, and messages that came later than anybody remembers. */
import { DEFAULT_RETAIN_MS } from '../../figures.js'
import { LOOK_QUARANTINE, type QuarantineFacts } from '../../postgres/sql/doctor-inbox.js'
import { QUARANTINE_ACCOUNTS } from '../../postgres/sql/quarantine.js'
import { CONSUMERS } from '../../postgres/sql/retain.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { counted, quoted, span, verb } from './words.js'

interface Facts {
  readonly kinds: readonly QuarantineFacts[]
  readonly accounts: readonly { readonly via: string; readonly messages: number; readonly bytes: number }[]
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

const FULL = check<Facts>({
  code: 'quarantine-full',
  severity: 'warning',
  why: 'A source whose part of the quarantine is full is told to come again with everything that cannot be handled, until there is room.',
  find: ({ accounts }, { runtime }) =>
    accounts.flatMap(({ via, messages, bytes }) => {
      const { maxRows, maxBytes } = runtime.origins.find(({ account }) => account === via)!.quota!
      const used = Math.max(messages / maxRows, bytes / maxBytes)
      if (used < NEARLY) return []
      return [
        {
          ...(used >= 1 && { severity: 'serious' as const }),
          what: `the quarantine of source ${via} is ${Math.round(used * 100)} % full`,
          figures: { source: via, messages, bytes, maxRows, maxBytes },
          fix: `await box.admin.discard({ source: ${quoted(via)}, state: 'quarantined' }, { reason: 'looked at' })   // or retry what can be handled now`,
        },
      ]
    }),
})

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

async function readQuarantine({ ask, consumers, runtime: { origins } }: Look): Promise<Facts> {
  const kinds = (await ask(LOOK_QUARANTINE, null)).map(({ facts }) => readJson(facts))
  const counted = origins.flatMap(({ account, quota }) => (account !== undefined && quota ? account : []))
  const accounts = await ask(QUARANTINE_ACCOUNTS, counted)
  const retain = kinds.some(({ reason }) => reason === 'too-old') ? await ask(CONSUMERS, null) : []
  return {
    kinds,
    accounts: accounts.map(({ via, messages, bytes }) => ({ via, messages: Number(messages), bytes: Number(bytes) })),
    retainMs: new Map([
      ...retain.map(({ name, retain_ms }) => [name, Number(retain_ms ?? DEFAULT_RETAIN_MS)] as const),
      ...consumers.map(({ name, options }) => [name, options.retainMs] as const),
    ]),
  }
}

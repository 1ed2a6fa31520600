/** Work: messages that wait, who is at them, and rows that no loop will ever reach. */
import { GONE_MS } from '../../figures.js'
import { retainedMs } from '../../inbox/retain.js'
import { LOOK_CONSUMERS, LOOK_STRAYS, type ConsumerFacts, type StrayFacts } from '../../postgres/sql/doctor-inbox.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { counted, literal, many, quoted, span, verb } from './words.js'

interface Facts {
  readonly consumers: readonly ConsumerFacts[]
  readonly strays: StrayFacts
}

/** Between two claims nothing is held, and the process is there. */
const isAttended = ({ held, processes }: ConsumerFacts): boolean => held || processes > 0

const UNATTENDED = check<Facts>({
  code: 'consumer-unattended',
  severity: 'serious',
  why: 'Messages are stored for it and nothing runs it: they wait for ever. As when a consumer was renamed or removed, or no process calls box.start().',
  find: ({ consumers }, { limits, consumers: local }) =>
    consumers
      .filter((one) => !one.paused && !isAttended(one) && one.dueMs !== null && one.dueMs > limits.waitingMs)
      .map(({ consumer, registered, due, dueMs }) => ({
        consumer,
        due,
        dueMs: dueMs!,
        declared: registered || local.some(({ name }) => name === consumer),
      }))
      .map(({ consumer, declared, due, dueMs }) => ({
        what: `${counted(due, 'message')} of consumer ${consumer} ${verb(due, 'is', 'are')} due, the oldest for ${span(dueMs)}, and nothing runs it${declared ? '' : '; no process has declared it either'}`,
        figures: { consumer, due, dueMs, declared: String(declared) },
        fix: `start a process that declares box.consumer(${quoted(consumer)}, …) and runs it; one that is gone for good: await box.admin.removeConsumer(${quoted(consumer)})   // says what waits, and removes nothing of it unasked`,
      })),
})

const BEHIND = check<Facts>({
  code: 'consumer-behind',
  severity: 'warning',
  why: 'More comes in than is handled, or handlers are stuck: everything after it waits as long.',
  find: ({ consumers }, { limits }) =>
    consumers
      .filter((one) => !one.paused && isAttended(one) && one.dueMs !== null && one.dueMs > limits.lagMs)
      .map(({ consumer, due, dueMs, arrived }) => ({
        what: `consumer ${consumer} is at work and ${span(dueMs!)} behind, with ${counted(due, 'message')} due`,
        figures: { consumer, due, dueMs: dueMs!, arrivedInFiveMinutes: arrived },
        fix: `start more processes, or raise concurrency of box.consumer(${quoted(consumer)}, …) and the pool’s max with it`,
      })),
})

const PAUSED = check<Facts>({
  code: 'consumer-paused',
  severity: 'warning',
  why: 'A paused consumer is forgotten easily: its messages are stored and wait until somebody resumes it.',
  find: ({ consumers }, { limits }) =>
    consumers
      .filter(({ paused, dueMs }) => paused && dueMs !== null && dueMs > limits.waitingMs)
      .map(({ consumer, due, dueMs, arrived }) => ({
        what: `consumer ${consumer} is paused, ${counted(due, 'message')} ${verb(due, 'waits', 'wait')}, the oldest for ${span(dueMs!)}, and ${many(arrived)} came in the last five minutes`,
        figures: { consumer, due, dueMs: dueMs!, arrivedInFiveMinutes: arrived },
        fix: `await box.admin.resume(${quoted(consumer)})`,
      })),
})

const LEASES = check<Facts>({
  code: 'leases-expired',
  severity: 'warning',
  why: 'Their worker died, and no other has taken its messages over: nothing runs the consumer any more.',
  find: ({ consumers }, { limits }) =>
    consumers
      .filter(({ expired, expiredMs }) => expired > 0 && expiredMs! > limits.waitingMs)
      .map(({ consumer, expired, expiredMs }) => ({
        what: `the ${verb(expired, 'lease', 'leases')} of ${counted(expired, 'message or key', 'messages or keys')} of consumer ${consumer} ${verb(expired, 'is', 'are')} over, the first for ${span(expiredMs!)}`,
        figures: { consumer, expired, expiredMs: expiredMs! },
        fix: `start a process that declares box.consumer(${quoted(consumer)}, …): it takes them over at once`,
      })),
})

const NEVER_DUE = check<Facts>({
  code: 'work-never-due',
  severity: 'serious',
  why: 'These messages are neither parked nor ever due: no loop will claim them.',
  find: ({ consumers }, { runtime: { db } }) =>
    consumers
      .filter(({ neverDue }) => neverDue > 0)
      .map(({ consumer, neverDue }) => ({
        what: `${counted(neverDue, 'message')} of consumer ${consumer} ${verb(neverDue, 'waits', 'wait')} for a time that does not come`,
        figures: { consumer, messages: neverDue },
        fix: `${db.bind(`update ob.work set due_at = ob.now() where lane is null and parked is null and due_at = 'infinity'`)};`,
      })),
})

const ORPHANED = check<Facts>({
  code: 'work-orphaned',
  severity: 'serious',
  why: 'Work without its message cannot run, and is in the way of what can: somebody has deleted rows by hand, or restored some tables and not others.',
  find({ strays: { orphans, looked } }, { runtime: { db } }) {
    if (orphans === 0) return []
    const missing =
      'not exists (select from ob.message m where m.consumer = w.consumer and m.source = w.source and m.id = w.id)'
    return [
      {
        what: `${orphans} of ${looked} rows of work that were looked at ${verb(orphans, 'has', 'have')} no message`,
        figures: { orphans, looked },
        fix: `${db.bind(`delete from ob.work w where ${missing}`)};`,
      },
    ]
  },
})

const ASLEEP = check<Facts>({
  code: 'keys-asleep',
  severity: 'serious',
  why: 'Messages of these keys wait, and what workers claim of them, their lane, is missing or never due.',
  find({ strays: { asleep } }, { runtime: { db } }) {
    if (asleep === 0) return []
    const wake = `insert into ob.lane as l (consumer, key, due_at)
select distinct consumer, lane, ob.now() from ob.work where lane is not null and parked is null
on conflict (consumer, key) do update set due_at = excluded.due_at where l.due_at = 'infinity' and l.token is null and not l.blocked`
    return [
      {
        what: `${counted(asleep, 'key')} ${verb(asleep, 'has', 'have')} messages and no claim finds ${verb(asleep, 'it', 'them')}`,
        figures: { keys: asleep },
        fix: `${db.bind(wake)};`,
      },
    ]
  },
})

/** Retention runs about once a minute, and may have a lot to do. */
const GRACE_MS = 3_600_000

const RETENTION = check<Facts>({
  code: 'retention-behind',
  severity: 'warning',
  why: 'Nothing deletes what was handled long ago, so the tables grow: no started box retains it, or its archive hook fails.',
  find: ({ consumers }, { consumers: local }) =>
    consumers.flatMap(({ consumer, retainMs, oldestHandledMs }) => {
      const own = local.find(({ name }) => name === consumer)?.options.retainMs
      const retained = retainedMs(own, retainMs)
      if (oldestHandledMs === null || oldestHandledMs < retained * 1.1 + GRACE_MS) return []
      return [
        {
          what: `consumer ${consumer} retains handled messages for ${span(retained)}, and has one that is ${span(oldestHandledMs)} old`,
          figures: { consumer, retainMs: retained, oldestMs: oldestHandledMs },
          fix: 'await box.admin.prune()',
        },
      ]
    }),
})

const WATERMARK_AHEAD = check<Facts>({
  code: 'watermark-ahead',
  severity: 'serious',
  why: 'Retention has deleted messages by a clock of the database that was ahead, so it may have forgotten whatever was sent before a time to come: until then every new message with a time is quarantined as too old.',
  find: ({ consumers }, { runtime: { db } }) =>
    consumers.flatMap(({ consumer, aheadMs }) => {
      if (aheadMs === null) return []
      // The name stays as it is, also where it has in it what stands for the schema.
      const mend = `${db.bind('update ob.forgotten set sent_before = ob.now() where sent_before > ob.now() and consumer = ')}${literal(consumer)}`
      return [
        {
          what: `retention of consumer ${consumer} has forgotten what was sent before a time that is ${span(aheadMs)} from now`,
          figures: { consumer, aheadMs },
          fix: `${mend};   -- once the clock is right; then release what is in quarantine as too-old and is new`,
        },
      ]
    }),
})

export const WORK = family('work', readWork, [
  UNATTENDED,
  BEHIND,
  PAUSED,
  LEASES,
  NEVER_DUE,
  ORPHANED,
  ASLEEP,
  RETENTION,
  WATERMARK_AHEAD,
])

async function readWork({ ask }: Look): Promise<Facts> {
  const consumers = await ask(LOOK_CONSUMERS, { goneMs: GONE_MS })
  const [strays] = await ask(LOOK_STRAYS, null)
  return { consumers: consumers.map(({ facts }) => readJson(facts)), strays: readJson(strays!.facts) }
}

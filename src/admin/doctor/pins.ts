/** Pins: what keeps dead rows from being removed, and the log of the server from being recycled. */
import { LOOK_PINS, type PinFacts } from '../../postgres/sql/doctor-server.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { literal, size, span } from './words.js'

type Facts = readonly PinFacts[]

/** So much longer than its limit and it is serious. */
const MUCH = 6
/** What a busy standby or slot may be behind. */
const FAR_XIDS = 1_000_000

const TRANSACTION_LONG = check<Facts>({
  code: 'transaction-long',
  severity: 'warning',
  why: 'No row that was deleted since it began can be removed: tables of work fill with dead rows, and claims become slower by the minute.',
  find: (pins, { limits }) =>
    of(pins, 'transaction')
      .filter(({ ageMs }) => ageMs! > limits.transactionMs)
      .map(({ name, who, ageMs, xids }) => ({
        ...(ageMs! > limits.transactionMs * MUCH && { severity: 'serious' as const }),
        what: `process ${name} of the server (${who}) has had a transaction open for ${span(ageMs!)}`,
        figures: { pid: Number(name), ageMs: ageMs!, ...(xids !== null && { transactionsSince: xids }) },
        fix: `select pg_terminate_backend(${name});`,
      })),
})

const PREPARED = check<Facts>({
  code: 'transaction-prepared',
  severity: 'warning',
  why: 'A prepared transaction outlives its session and the server, holds its locks and keeps dead rows until somebody ends it.',
  find: (pins, { limits }) =>
    of(pins, 'prepared')
      .filter(({ ageMs }) => ageMs! > limits.transactionMs)
      .map(({ name, who, ageMs, xids }) => ({
        what: `transaction ${name} of role ${who} was prepared ${span(ageMs!)} ago, and is neither committed nor rolled back`,
        figures: { gid: name, ageMs: ageMs!, ...(xids !== null && { transactionsSince: xids }) },
        fix: `rollback prepared ${literal(name)};   -- or: commit prepared ${literal(name)}`,
      })),
})

const SLOT = check<Facts>({
  code: 'slot-unused',
  severity: 'warning',
  why: 'The server keeps its log for a replication slot that nobody reads, until the disk is full, and dead rows too if the slot says so.',
  find: (pins) =>
    of(pins, 'slot')
      .filter(({ active, xids }) => !active || (xids ?? 0) > FAR_XIDS)
      .map(({ name, who, active, walBytes, xids }) => ({
        what: `replication slot ${name} (${who}) keeps ${walBytes === null ? 'no log' : `${size(walBytes)} of log`}${xids === null ? '' : ` and the dead rows of ${xids} transactions`}`,
        figures: { slot: name, walBytes: walBytes ?? 0, ...(xids !== null && { transactionsSince: xids }) },
        fix: active
          ? `see why its reader is behind: select * from pg_replication_slots s left join pg_stat_replication r on r.pid = s.active_pid where s.slot_name = ${literal(name)};`
          : `select pg_drop_replication_slot(${literal(name)});   -- if nobody needs it any more`,
      })),
})

const STANDBY = check<Facts>({
  code: 'standby-pins-rows',
  severity: 'warning',
  why: 'With hot_standby_feedback a long query on a standby keeps dead rows on the primary.',
  find: (pins) =>
    of(pins, 'standby')
      .filter(({ xids }) => xids! > FAR_XIDS)
      .map(({ name, xids }) => ({
        what: `standby ${name} keeps the dead rows of ${xids} transactions`,
        figures: { standby: name, transactionsSince: xids! },
        fix: 'on the standby: select pid, xact_start, query from pg_stat_activity order by xact_start; then pg_terminate_backend(pid)',
      })),
})

export const PINS = family('what keeps dead rows', readPins, [TRANSACTION_LONG, PREPARED, SLOT, STANDBY])

function of(pins: Facts, kind: PinFacts['kind']): Facts {
  return pins.filter((one) => one.kind === kind)
}

async function readPins({ ask }: Look): Promise<Facts> {
  return (await ask(LOOK_PINS, null)).map(({ facts }) => readJson(facts))
}

/**
 * What must hold after any meeting, whoever came first: what the parties were told, in the order of their commits, has to
 * agree with the rows that are there in the end.
 */
import type { Domain } from './meet.js'
import { LEASE_MS, type Deed, type State } from './messages.js'

export interface Work {
  readonly id: string
  readonly seq: number
  readonly lane: string | null
  readonly token: string | null
  /** From now; null is infinity. */
  readonly dueMs: number | null
  readonly attempts: number
  readonly parked: string | null
  readonly reason: string | null
}

export interface Lane {
  readonly token: string | null
  readonly dueMs: number | null
  readonly blocked: boolean
}

export interface Snapshot {
  readonly messages: readonly string[]
  /** Those of them that have the time at which they were handled. */
  readonly timed: readonly string[]
  readonly work: readonly Work[]
  readonly lane: Lane | null
  readonly effect: { readonly state: 'intent' | 'done'; readonly caller: string | null } | null
}

const due = (column: string): string =>
  `case when ${column} < 'infinity' then extract(epoch from ${column} - ob.now()) * 1000 end`

const SNAPSHOT = `
with p as materialized (select $1::text::jsonb->>0 consumer)
select jsonb_build_object(
  'messages', coalesce((select jsonb_agg(m.id order by m.id) from ob.message m, p where m.consumer = p.consumer), '[]'),
  'timed', coalesce((select jsonb_agg(m.id order by m.id) from p, ob.message m join ob.handled h using (n)
    where m.consumer = p.consumer), '[]'),
  'work', coalesce((select jsonb_agg(jsonb_build_object('id', w.id, 'seq', w.seq, 'lane', w.lane, 'token', w.token,
      'dueMs', ${due('w.due_at')}, 'attempts', w.attempts, 'parked', w.parked, 'reason', w.reason) order by w.seq)
    from ob.work w, p where w.consumer = p.consumer), '[]'),
  'lane', (select jsonb_build_object('token', l.token, 'dueMs', ${due('l.due_at')}, 'blocked', l.blocked)
    from ob.lane l, p where l.consumer = p.consumer),
  'effect', (select jsonb_build_object('state', e.state, 'caller', e.token) from ob.effect e, p where e.consumer = p.consumer))::text snapshot`

/** What is wrong, in words; nothing if all is well. `deeds` are those that committed, in that order. */
function judge(state: State, before: Snapshot, after: Snapshot, deeds: readonly Deed[]): string[] {
  return [
    ...judgeFates(before, after, deeds),
    ...judgeOwners(state, before, after, deeds),
    ...judgeAttempts(before, after, deeds),
    ...(state.ordered ? judgeLane(state, after, deeds) : judgeLoose(after)),
    ...judgeEffect(before, after, deeds),
  ]
}

export const MESSAGES: Domain<State, Deed, Snapshot> = { snapshot: SNAPSHOT, judge }

/** A message is handled once, stays handled, and is never lost. */
function judgeFates(before: Snapshot, after: Snapshot, deeds: readonly Deed[]): string[] {
  const wrong: string[] = []
  for (const id of ['m', 'm2']) {
    const fate = (snapshot: Snapshot): 'unknown' | 'handled' | 'open' => {
      if (snapshot.work.some((work) => work.id === id)) return 'open'
      return snapshot.messages.includes(id) ? 'handled' : 'unknown'
    }
    let expected: 'unknown' | 'handled' | 'open' | 'forgotten' = fate(before)
    for (const deed of deeds.filter((one) => one.id === id)) {
      if (deed.handled) {
        if (expected === 'handled' || expected === 'forgotten') wrong.push(`${id} was handled twice`)
        expected = 'handled'
      } else if (deed.again === 'replay') {
        if (expected !== 'handled') wrong.push(`${id} was replayed and not handled`)
        expected = 'open'
      } else if (deed.pruned) {
        expected = 'forgotten'
      } else if (deed.marked) {
        if (expected === 'handled') wrong.push(`${id} was handled, and counted as marked`)
        expected = 'handled'
      } else if (deed.removed) {
        expected = deed.removed === 'whole' ? 'unknown' : 'handled'
      } else if (deed.stored) {
        if (expected !== 'unknown') wrong.push(`${id} was known and passed for new`)
        expected = 'open'
      } else if (deed.leased !== undefined || deed.counted !== undefined || deed.discarded) {
        if (expected === 'forgotten') wrong.push(`${id} was forgotten and passed for new`)
        if (expected === 'handled') wrong.push(`${id} was handled, and somebody has it as work`)
        expected = 'open'
      }
    }
    const found = fate(after)
    if (expected === 'handled' && found === 'open') wrong.push(`${id} was handled and is work again`)
    if (expected === 'handled' && found === 'unknown') wrong.push(`${id} was handled and nobody remembers it`)
    const ran = deeds.findLast((one) => one.id === id && (one.handled ?? one.again))?.handled
    if (ran && found === 'handled' && !after.timed.includes(id)) wrong.push(`${id} was handled and has no time`)
    if (expected === 'open' && found !== 'open') wrong.push(`${id} was not handled and is not work any more`)
    if ((expected === 'unknown' || expected === 'forgotten') && found !== 'unknown') {
      wrong.push(`${id} is ${found} though nobody stored it`)
    }
    const waits = after.work.some((work) => work.id === id && work.parked === 'failed')
    if (waits && deeds.some((deed) => deed.id === id && deed.boxed))
      wrong.push(`${id} waits for a source that forgot it`)
    if (found === 'open' && !after.messages.includes(id)) wrong.push(`${id} is work without a message`)
  }
  return wrong
}

/** At most one party holds a message or a lane, and it is the one on the row. */
function judgeOwners(state: State, before: Snapshot, after: Snapshot, deeds: readonly Deed[]): string[] {
  const wrong: string[] = []
  const row = (snapshot: Snapshot): { token: string | null; dueMs: number | null } | null | undefined =>
    state.ordered ? snapshot.lane : snapshot.work.find(({ id }) => id === 'm')
  const start = row(before)
  const end = row(after)
  let owner = start?.token && (start.dueMs ?? 0) > 0 ? start.token : undefined
  const mayCount = (by: string): boolean => owner === by || (!ended && start?.token === by)
  let ended = false
  for (const deed of deeds) {
    if (deed.total && !mayCount(deed.total.by)) wrong.push('a party counted an attempt of what it does not hold')
    ended ||= deed.leased !== undefined || deed.gaveBack !== undefined
    if (deed.leased !== undefined) {
      if (owner !== undefined) wrong.push('two parties were told that it is theirs')
      owner = deed.leased
    } else if (deed.gaveBack !== undefined) {
      if (owner !== undefined && owner !== deed.gaveBack) wrong.push('a party gave back what another holds')
      owner = undefined
    } else if (deed.kept !== undefined) {
      if (owner !== undefined && owner !== deed.kept) wrong.push('a party was told that it keeps what another holds')
      owner = deed.kept
    } else if (owner !== undefined && !state.ordered) {
      if (deed.handled ?? deed.marked) wrong.push('it was handled while another held it')
      if (deed.again ?? deed.discarded ?? deed.pruned ?? deed.removed) wrong.push('a person took what somebody holds')
    }
  }
  const kept = deeds.findLast((deed) => deed.kept !== undefined)?.kept
  const lostSince = deeds.some((deed) => deed.leased !== undefined || deed.gaveBack !== undefined)
  if (kept !== undefined && !lostSince && end?.token === kept && (end.dueMs ?? 0) <= 2 * LEASE_MS) {
    wrong.push('a heartbeat was told that it holds, and extended nothing')
  }
  if (owner !== undefined && end && end.token !== owner) wrong.push('the holder is not the one on the row')
  if (owner !== undefined && !end && !deeds.some((deed) => deed.handled)) wrong.push('what somebody holds is gone')
  const known = [before.lane?.token, ...before.work.map(({ token }) => token)]
  if (!state.ordered && owner === undefined && end?.token && !known.includes(end.token)) {
    wrong.push('it is held by nobody who knows')
  }
  return wrong
}

/** Attempts are what the parties added, no more and no less. */
function judgeAttempts(before: Snapshot, after: Snapshot, deeds: readonly Deed[]): string[] {
  const end = after.work.find(({ id }) => id === 'm')
  if (!end) return []
  let expected = before.work.find(({ id }) => id === 'm')?.attempts ?? 0
  for (const { again, removed, total, counted = 0 } of deeds) {
    if (again !== undefined || removed !== undefined) expected = 0
    expected = total?.is ?? expected + counted
  }
  return end.attempts === expected ? [] : [`${end.attempts} attempts instead of ${expected}`]
}

function judgeLoose(after: Snapshot): string[] {
  const wrong: string[] = []
  for (const { parked, token, dueMs, reason } of after.work) {
    if (parked !== null && token !== null) wrong.push('it is parked and held')
    if (parked !== null && dueMs !== null) wrong.push('it is parked and due')
    if (parked === null && dueMs === null) wrong.push('it waits for nobody and is never due')
    // Who holds it has it from its source.
    const onArrival = reason === 'arrival' && token !== null
    if (parked === null && reason !== null && !onArrival) wrong.push('it is not parked and has a reason')
  }
  return wrong
}

/** A lane never sleeps over a message, waits for one that is there, is blocked by something, and keeps the order of commits. */
function judgeLane({ behind }: State, { lane, work }: Snapshot, deeds: readonly Deed[]): string[] {
  const wrong: string[] = []
  const waiting = work.filter(({ parked }) => parked === null)
  const blocking = work.filter(({ parked }) => parked === 'dead' || parked === 'quarantined')
  if (waiting.length > 0 && !lane) wrong.push('a message waits in no lane')
  if (waiting.length > 0 && lane && lane.dueMs === null && lane.token === null && !lane.blocked) {
    wrong.push('the lane sleeps over a message')
  }
  const left = deeds.some(({ id, discarded, marked }) => id === 'm' && (discarded ?? marked))
  if (left && waiting.length > 0 && waiting[0]!.id !== 'm' && lane?.token === null && (lane.dueMs ?? 0) > 0) {
    wrong.push('the lane waits for a message that has left')
  }
  if (lane?.blocked && (lane.dueMs !== null || lane.token !== null)) wrong.push('the lane is blocked and runs')
  if (lane?.blocked && blocking.length === 0) wrong.push('the lane is blocked by nothing')
  if (behind && blocking.some(({ id }) => id === 'm2') && !lane?.blocked) wrong.push('the lane passes what blocks it')
  const stored = deeds.filter((deed) => deed.stored).map(({ id }) => id)
  const [first, second] = stored.map((id) => work.find((one) => one.id === id)?.seq)
  if (first !== undefined && second !== undefined && first > second)
    wrong.push('the lane is not in the order of commits')
  return wrong
}

/** An outcome stays on record; an intent is taken back only by who may; nobody waits for an answer that is there. */
function judgeEffect(before: Snapshot, after: Snapshot, deeds: readonly Deed[]): string[] {
  const wrong: string[] = []
  let expected = before.effect?.state ?? null
  // Who said that it would call: then it is the one to say that it did not.
  let caller = before.effect?.caller ?? null
  for (const deed of deeds) {
    if (deed.intended) {
      // Who asks again, for want of an answer, is told the same.
      const again = expected === 'intent' && caller === deed.intended.call
      if (deed.intended.before === null && expected !== null && !again)
        wrong.push('two parties were told that nobody called before')
      if (expected === null || !deed.intended.parks) caller = deed.intended.call
      expected ??= 'intent'
    }
    if (deed.recorded) expected = 'done'
    if (deed.answered === 'happened') expected = 'done'
    if ((deed.answered === 'did not' && expected === 'intent') || deed.pruned || deed.removed === 'whole')
      expected = null
    if (deed.forgotten !== undefined && deed.forgotten === caller && expected === 'intent') expected = null
  }
  const found = after.effect?.state ?? null
  if (expected === 'done' && found !== 'done') wrong.push('an outcome was recorded and is not on record')
  if (expected === 'intent' && found === null) wrong.push('an intent was taken back by a party without the right')
  if (expected === null && found !== null) wrong.push('an effect is on record that was taken back')
  if (found !== null && !after.messages.includes('m')) wrong.push('an effect is on record of a message that is gone')
  const head = after.work.find(({ id }) => id === 'm')
  if (head?.parked === 'quarantined' && found !== 'intent') {
    wrong.push('it waits for an answer that nobody can give any more')
  }
  return wrong
}

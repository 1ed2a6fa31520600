/** Alone: one message, one transaction. What it throws decides its fate. */
import { isConflict } from '../postgres/errors.js'
import { EffectUnknown } from '../effects/effect.js'
import { EffectJournal, JournalFailed, resumeRecorded } from '../effects/journal.js'
import { OnceboxError, ownError } from '../errors.js'
import { batchRun } from '../handler.js'
import { COUNT_ATTEMPT } from '../postgres/sql/settle.js'
import { backoffMs, sleep } from '../backoff.js'
import { SimulatedCrash } from '../worker/failpoints.js'
import { callHandler, NO_EFFECTS, type Effects } from './call.js'
import { applyVerdict, isLost, missedAttempts, putBack, quarantineInvalid, recordFailure } from './fail.js'
import { setAttempts, type HeldMessage } from './held.js'
import { forgetLoss, hasLost, isToBlame, noteServer } from './losses.js'
import { pass } from './pass.js'
import type { Run } from './run.js'
import { suspectTurn } from './suspects.js'
import { blameOf, Blameless, CommitFailed, CommitUnknown, isAway, withoutBlame } from './transaction.js'
import { verdictOf } from './verdict.js'

export async function runAlone(run: Run, message: HeldMessage): Promise<void> {
  const { worker, held, abort } = run
  if (hasLost(worker, message)) await noteServer(worker, message)
  try {
    await attemptCalmly(run, message)
    return forgetLoss(worker, message)
  } catch (error) {
    if (error instanceof NeedsLease) return held.adopt!(message)
    if (error instanceof SimulatedCrash || isLost(error)) throw error
    // To go on with what is held would run the messages behind it in its lane. And stopping is not the message's fault.
    if (error instanceof CommitUnknown || abort.aborted) throw error
    if (error instanceof Blameless) {
      // Others hold it, or what it needs to be entered. Anything else keeps its neighbours out, too.
      const taken = !error.called && held.lease === undefined && isConflict(error)
      if (error.called || taken) await putBack(held, message)
      if (taken) return
      throw error
    }
    if (error instanceof SessionsLost) return recordFailure(run, message, error.cause)
    // What was tried again was judged then.
    if (error instanceof CommitFailed) throw error
    if (isAway(error) && !(await isToBlame(worker, message, error))) throw error
    await recordFailure(run, message, withoutBlame(error))
    if (error instanceof EffectUnknown) await resumeRecorded(worker.runtime, subjectOf(run, message), error, abort)
  }
}

/** What came to nothing through no fault of the message is tried again at once, before the message is given back. */
async function attemptCalmly(run: Run, message: HeldMessage): Promise<void> {
  const { patience } = run.held
  const end = performance.now() + patience.ms
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(run, message)
    } catch (error) {
      if (!isConflict(error) && !(error instanceof CommitFailed)) throw error
      // It may have lost its connection because of what its handler did: that is not tried for ever.
      if (error instanceof CommitFailed && (await isToBlame(run.worker, message, error))) {
        throw new SessionsLost(withoutBlame(error))
      }
      if (tries >= patience.tries || performance.now() > end || run.worker.stopping() || run.abort.aborted) throw error
      await sleep(backoffMs(tries, patience.pauseMs, 20 * patience.pauseMs))
    }
  }
}

async function attempt(run: Run, message: HeldMessage): Promise<void> {
  const { worker, held, abort } = run
  const { consumer, pace, runtime } = worker
  const journal =
    held.journaled && !batchRun(consumer.handlerOf(message.type))
      ? new EffectJournal(runtime, subjectOf(run, message))
      : undefined
  const effects: Effects = journal ?? NO_EFFECTS
  let began: number | undefined
  /** What fails after the handler has returned, or in an effect, is a part of the attempt. */
  const noteTime = (): void => {
    if (began !== undefined) message.ranMs = performance.now() - began
  }
  for (;;) {
    try {
      return await pass(run, {
        messages: [message],
        async call(open, ours) {
          if (ours.length === 0) return []
          const started = performance.now()
          began ??= started
          const result = await callHandler(run, open, ours, { effects })
          pace.took(message.type, performance.now() - started)
          return [{ message, result }]
        },
      })
    } catch (error) {
      noteTime()
      const wanted = journal?.takeWanted()
      if (!wanted || error instanceof SimulatedCrash || abort.aborted) throw error
      if (!held.lease) {
        pace.alone.add(message.type)
        throw new NeedsLease()
      }
      await journal!.perform(wanted, held.lease.token, consumer.options, abort).catch((failed: unknown) => {
        noteTime()
        throw failed instanceof JournalFailed ? blameOf(failed.cause) : failed
      })
    }
  }
}

/** It has lost its connection so often that it is held responsible: the cause says how. */
class SessionsLost extends Error {
  override readonly name = 'SessionsLost'
  constructor(override readonly cause: unknown) {
    super('the message lost its connection again and again', { cause })
  }
}

/** An effect is called with no transaction open, and nothing but a lease would keep others from the message meanwhile. */
class NeedsLease extends Error {
  override readonly name = 'NeedsLease'
}

function subjectOf({ worker }: Run, { source, id }: HeldMessage) {
  return { consumer: worker.consumer.name, source, id }
}

/**
 * Its last worker died while holding it, perhaps because of it: when its turn comes, count first, then run it with nobody
 * else, and with no other suspect in this process.
 */
export async function runSuspect(run: Run, message: HeldMessage): Promise<void> {
  const endTurn = await suspectTurn(run.abort)
  try {
    // A box that stops starts nothing.
    if (!run.worker.stopping()) await runInTurn(run, message)
  } finally {
    endTurn()
  }
}

async function runInTurn(run: Run, message: HeldMessage): Promise<void> {
  const { worker, held } = run
  const { runtime, consumer } = worker
  const before = message.attempts
  // From here on it may be counted, whether we hear of it or not.
  message.attemptsBefore = before
  if (before > 0) {
    // Attempts that found no handler have killed nobody.
    const missed = await missedAttempts(worker, message)
    const error = new OnceboxError(
      'WORKER_DIED',
      `its worker died or lost its lease ${before - missed} times; look for a crash, an out-of-memory kill or a blocked event loop`,
    )
    const verdict = before > missed ? verdictOf(error, message, consumer.options.retry, missed) : undefined
    if (verdict?.parked) {
      // No attempt comes after those that were counted.
      message.message = { ...message.message, attempt: before }
      return applyVerdict(run, message, verdict)
    }
  }
  message.suspect = false
  setAttempts(message, before + 1)
  const { source, id, lane, attempts: total } = message
  const claim = { consumer: consumer.name, token: held.lease!.token }
  const rows = await runtime.db.run(COUNT_ATTEMPT, { ...claim, source, id, lane, total })
  if (rows.length === 0) throw ownError('CLAIM_LOST', `message ${id} was claimed by another worker`)
  await message.read?.()
  return message.problem === undefined ? runAlone(run, message) : quarantineInvalid(run, message)
}

/**
 * One transaction inside `sql.begin`, which ends it in ways that need care: it cannot give up on a statement that hangs, and
 * after its connection was lost it would send ROLLBACK or COMMIT to nobody (which ends the process) or to the next user of that
 * connection.
 *
 * Its COMMIT it prepares by name, and does not look at the answer. If a pooler has lost the name, the transaction fails for it,
 * and the COMMIT that postgres.js then sends under another name is answered with ROLLBACK: nothing was committed, and nobody is
 * told. So COMMIT is sent here, without a name, and `sql.begin` is never told that its work is done.
 */
import { isReadOnly } from '../../errors.js'
import { rolledBack } from '../loan-errors.js'
import { ignore, whenSent } from '../watch.js'
import type { Asked, Connection, Place } from './asked.js'
import { Gate, type Handle } from './gate.js'
import { guard } from './guard.js'

export class Run<R> {
  readonly #settings: string | undefined
  #gate: Gate | undefined
  #connection: Connection | undefined
  /** True once postgres.js has given up on its own, while `work` may still be running. */
  #lost = false
  #failed: { readonly error: unknown } | undefined
  #giveUp: (error: unknown) => void = ignore
  readonly #givenUp = new Promise<never>((_, reject) => (this.#giveUp = reject))
  #commitSent: (answered: Promise<R>) => void = ignore
  readonly #committed = new Promise<R>((resolve) => (this.#commitSent = resolve))

  constructor(settings?: string) {
    this.#settings = settings
  }

  /** True once BEGIN was answered. */
  get begun(): boolean {
    return this.#gate !== undefined
  }

  /** For how long the server has been silent though it owes an answer. */
  get silentMs(): number {
    return this.#gate?.silentMs ?? 0
  }

  /** Rejects the transaction, whatever postgres.js makes of it. */
  giveUp(reason: unknown): void {
    this.#failed ??= { error: reason }
    this.#lose()
    this.#giveUp(reason)
  }

  /** Tells postgres.js that the connection is no good. */
  terminate(): void {
    this.#connection?.terminate?.()
  }

  /** Where the answer is that it waits for. Its statements have the connection to themselves. */
  asked(begin: Asked): Asked {
    const place = (): Place => (this.begun ? 'next' : begin.place)
    const connection = (): Connection | undefined => this.#connection ?? begin.connection
    return {
      get place() {
        return place()
      },
      get connection() {
        return connection()
      },
    }
  }

  /** What `sql.begin` calls: it rolls back if this rejects. */
  async inside(raw: Handle, work: (tx: Handle) => Promise<R>): Promise<R> {
    // postgres.js goes on connecting for a BEGIN that was given up. Nobody waits for this one: it is rolled back.
    if (this.#lost) throw this.#failed!.error
    const gate = (this.#gate = new Gate())
    // jit: compiling a statement that runs for a millisecond takes fifty. Travels with the first statement.
    const settings = this.#settings === undefined ? '' : `; ${this.#settings}`
    const onexecute = (connection: object): boolean => {
      this.#connection = connection
      return true
    }
    // Values, even if none, and the simple protocol, since there may be several commands.
    const first = raw.unsafe(`set local jit = off${settings}`, [], { onexecute })
    gate.pass(first, false)
    first.catch(ignore)
    try {
      const result = await work(guard({ raw, gate }))
      const swallowed = gate.failure
      await gate.settled()
      if (gate.failure !== undefined) throw swallowed === undefined ? gate.failure : rolledBack(swallowed)
      if (!this.#lost) this.#commitSent(this.#commit(raw, gate, result))
      // Whatever postgres.js sent from now on would reach the next user of the connection.
      return await never()
    } catch (error) {
      this.#failed = { error }
      // The ROLLBACK of postgres.js would wait behind the running statement.
      if (gate.cancelAll()) this.#giveUp(error)
      // The session has ended and its socket is about to: a ROLLBACK written in between would block the connection.
      if (isFatal(gate.failure)) this.giveUp(error)
      // A ROLLBACK would put the connection back into the pool, or wait behind a COPY that nobody ends.
      if (isReadOnly(gate.failure) || gate.copies) {
        this.giveUp(error)
        this.terminate()
      }
      // The statement is told of a lost connection before the transaction is.
      await whenSent()
      if (this.#lost) return await never()
      throw error
    } finally {
      gate.close()
    }
  }

  async #commit(raw: Handle, gate: Gate, result: R): Promise<R> {
    gate.close()
    // Without values it has no name.
    const commit = raw.unsafe('commit')
    gate.pass(commit, false)
    const { command } = (await commit) as { command?: string }
    if (command === 'ROLLBACK') throw rolledBack()
    return result
  }

  /** Settles with the transaction, of which `sql.begin` knows only how it fails. */
  ended(begin: Promise<R>): Promise<R> {
    return Promise.race([begin, this.#committed])
  }

  async outcome(ended: Promise<R>): Promise<R> {
    this.#givenUp.catch(ignore)
    ended.catch(() => this.#lose())
    try {
      return await Promise.race([ended, this.#givenUp])
    } catch (error) {
      throw this.#failed ? this.#failed.error : error
    }
  }

  #lose(): void {
    this.#lost = true
    this.#gate?.close()
  }
}

/** What a server says as its last words on a connection. */
function isFatal(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown }
  return severity === 'FATAL' || severity === 'PANIC'
}

/** Nobody waits for it any more. */
function never(): Promise<never> {
  return new Promise(ignore)
}

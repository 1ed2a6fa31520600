/**
 * One transaction inside `sql.begin`, which ends it in ways that need care: it does not look at the answer to COMMIT,
 * it cannot give up on a statement that hangs, and after its connection was lost it would send ROLLBACK or COMMIT to
 * nobody (which ends the process) or to whoever uses that connection next.
 */
import { rolledBack } from '../loan-errors.js'
import { Gate, guard, type Handle, ignore } from './gate.js'

export class Run<R> {
  #gate: Gate | undefined
  /** True once postgres.js has given up on its own, while `work` may still be running. */
  #lost = false
  #failed: { readonly error: unknown } | undefined
  #giveUp: (error: unknown) => void = ignore
  readonly #givenUp = new Promise<never>((_, reject) => (this.#giveUp = reject))

  /** What `sql.begin` calls: its promise decides between COMMIT and ROLLBACK. */
  async inside(raw: Handle, work: (tx: Handle) => Promise<R>): Promise<R> {
    const gate = (this.#gate = new Gate(raw))
    // jit: compiling a statement that runs for a millisecond takes fifty. Travels with the first statement.
    raw.unsafe('set local jit = off').catch(ignore)
    try {
      const result = await work(guard(raw, gate))
      const swallowed = gate.failure
      await gate.settled()
      if (gate.failure !== undefined) throw swallowed === undefined ? gate.failure : rolledBack(swallowed)
      return this.#lost ? await never() : result
    } catch (error) {
      this.#failed = { error }
      // The ROLLBACK of postgres.js would wait behind the running statement.
      if (gate.cancelAll()) this.#giveUp(error)
      // The statement is told of a lost connection before the transaction is.
      await new Promise(setImmediate)
      if (this.#lost) return await never()
      throw error
    } finally {
      gate.open = false
    }
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
    if (this.#gate) this.#gate.open = false
  }
}

/** Nobody waits for it any more. */
function never(): Promise<never> {
  return new Promise(ignore)
}

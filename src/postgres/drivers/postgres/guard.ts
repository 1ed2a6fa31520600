/** The handle of a postgres.js transaction as it is given out: itself in every respect, but its statements pass the gate. */
import { sharedByCopies } from '../../../copies.js'
import { handlerCalled, transactionClosed } from '../loan-errors.js'
import { ignore, refused, whenSent } from '../watch.js'
import { type Gate, type Handle, type Pending, textOf } from './gate.js'
import { wholeText } from './whole-text.js'

type Work = (tx: Handle) => unknown

/** A handle that was given out. */
export interface Given {
  readonly raw: Handle
  readonly gate: Gate
  /** True within a savepoint. */
  readonly nested?: boolean
}

const handles = sharedByCopies('guarded-handles', () => new WeakMap<object, Given>())

/** What is behind a guarded handle; undefined for one that postgres.js itself gave out. */
export function givenBy(handle: unknown): Given | undefined {
  return typeof handle === 'function' ? handles.get(handle) : undefined
}

export function guard(given: Given): Handle {
  const { raw, gate } = given
  const handle = new Proxy(raw, {
    apply(target, _, args: unknown[]) {
      gate.used(args)
      return watched(Reflect.apply(target, undefined, args), given)
    },
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (key === 'unsafe' || key === 'file') {
        return (...args: unknown[]) => watched(Reflect.apply(value as Handle, target, args), given)
      }
      if (key === 'savepoint') return (...args: unknown[]) => savepoint(value as Handle, args, given)
      if (key === 'prepare') {
        return () => {
          throw handlerCalled('prepare')
        }
      }
      return value
    },
  })
  handles.set(handle, given)
  return handle
}

/** Fragments and identifiers pass through here too; only what is sent ever calls its handler. */
function watched(query: unknown, { gate, nested = false }: Given): unknown {
  const pending = query as Pending
  const send = pending?.handler
  if (typeof send !== 'function') return query
  gate.made(pending)
  pending.handler = Object.assign(
    (sent: Pending) => {
      const error = gate.refuse(wholeOf(sent, gate)) ?? unfitBesideOthers(gate, sent)
      if (!error) {
        gate.pass(sent, nested)
        return send(sent)
      }
      // One that nobody awaits must not end the process. Not `catch`, which would send it.
      void Promise.prototype.then.call(sent, ignore, ignore)
      return sent.reject?.(error)
    },
    { debug: send.debug },
  )
  return query
}

/** With its fragments. One that cannot be read is judged by the words around it, and may not run beside others. */
function wholeOf(query: Pending, gate: Gate): string | undefined {
  return wholeText(query) ?? (gate.inCompany ? undefined : textOf(query))
}

/** What is asked behind a cursor ends it. */
function unfitBesideOthers(gate: Gate, { cursorFn }: Pending) {
  return gate.inCompany && cursorFn ? gate.leave() : undefined
}

function savepoint(make: Handle, args: unknown[], { raw, gate }: Given): Promise<unknown> {
  if (gate.inCompany) return refused(gate.leave())
  const done = new Promise((resolve, reject) => {
    if (gate.dead) throw transactionClosed()
    const guarded = args.map((arg) => (typeof arg === 'function' ? guardCallback(arg as Work, gate, reject) : arg))
    ;(Reflect.apply(make, raw, guarded) as Promise<unknown>).then(resolve, reject)
  })
  // Its first statement is sent past the gate, and the others only after that.
  gate.hold(done)
  return done
}

/** `lost` hears of a connection that died; postgres.js, which would roll back to the savepoint, hears nothing more. */
function guardCallback(work: Work, gate: Gate, lost: (error: unknown) => void): Work {
  return async (inner) => {
    try {
      return await work(guard({ raw: inner, gate, nested: true }))
    } catch (error) {
      // The statement is told of a lost connection before the transaction is.
      await whenSent()
      if (!gate.dead) throw error
      lost(error)
      return new Promise(ignore)
    }
  }
}

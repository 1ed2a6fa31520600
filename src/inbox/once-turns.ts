/**
 * Turns: of the calls of `once` in one transaction, one runs after the other. Savepoints nest, so of two side by side the one that
 * fails would undo the other, which was told that it is handled. A call inside the work of another is part of that work: its
 * savepoint lies within, and only its neighbours there are waited for.
 *
 * Transactions are told by their id: an ORM may have several objects for one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { sharedByCopies } from '../copies.js'
import { createTurns } from '../in-turn.js'

type Turns = ReturnType<typeof createTurns>

/** A call whose work runs, as calls inside it see it. */
interface Frame {
  readonly xid: string
  readonly turns: Turns
  readonly outer: Frame | undefined
  over: boolean
}

/** What several calls share while one of them is under way. */
interface Shared<T> {
  readonly value: T
  users: number
}

const state = sharedByCopies('once-turns', () => ({
  frames: new AsyncLocalStorage<Frame>(),
  /** Asked once: the transaction answers nothing while a statement of another call has failed in it. */
  ids: new WeakMap<object, Shared<Promise<string>>>(),
  turns: new Map<string, Shared<Turns>>(),
}))

/** `ask` tells the id of the transaction. */
export function inItsTurn<R>(tx: object, ask: () => Promise<string>, call: () => Promise<R>): Promise<R> {
  return sharing(state.ids, tx, ask, async (asked) => {
    const xid = await asked
    const around = frameOf(xid)
    const run = (): Promise<R> => within(xid, call)
    if (around) return around.turns(run)
    return sharing(state.turns, xid, createTurns, (turns) => turns(run))
  })
}

/** The innermost call around this one, in the same transaction. */
function frameOf(xid: string): Frame | undefined {
  let frame = state.frames.getStore()
  while (frame && (frame.over || frame.xid !== xid)) frame = frame.outer
  return frame
}

async function within<R>(xid: string, call: () => Promise<R>): Promise<R> {
  const frame: Frame = { xid, turns: createTurns(), outer: state.frames.getStore(), over: false }
  try {
    return await state.frames.run(frame, call)
  } finally {
    frame.over = true
  }
}

interface Shelf<K, T> {
  get(key: K): Shared<T> | undefined
  set(key: K, shared: Shared<T>): unknown
  delete(key: K): unknown
}

async function sharing<K, T, R>(shelf: Shelf<K, T>, key: K, make: () => T, use: (value: T) => Promise<R>): Promise<R> {
  const shared = shelf.get(key) ?? { value: make(), users: 0 }
  shelf.set(key, shared)
  shared.users += 1
  try {
    return await use(shared.value)
  } finally {
    shared.users -= 1
    if (shared.users === 0) shelf.delete(key)
  }
}

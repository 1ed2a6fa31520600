/**
 * What cases assert. Errors are judged along their causes, as oncebox does: clients such as ORMs wrap what the server, or
 * the client underneath, has said.
 */
import assert from 'node:assert/strict'
import { OnceboxError, type OnceboxErrorCode } from '../../errors.js'
import { someCause } from '../../failure.js'
import { isConnectionLoss, sqlState } from '../../postgres/errors.js'

export function assertLost(error: unknown, moment = 'then'): void {
  assert.ok(someCause(error, isConnectionLoss), `${moment}, not seen as a lost connection: ${String(error)}`)
}

/** Turns a throw into a rejection: a refusal may be either. */
export async function attempt<T>(run: () => T): Promise<Awaited<T>> {
  return await run()
}

/** Nothing may wait for as long as TCP does. */
export async function within<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: 'it did not end within 20 s' })), 20_000)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error
  }
  assert.fail(`expected a rejection, got ${JSON.stringify(value)}`)
}

export async function rejectsWithState(state: string, promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  const carried = someCause(error, (cause) => sqlState(cause) === state)
  assert.ok(carried, `expected SQLSTATE ${state}, got ${String(error)}`)
}

export async function rejectsWithCode(code: OnceboxErrorCode, promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  const carried = someCause(error, (cause) => cause instanceof OnceboxError && cause.code === code)
  assert.ok(carried, `expected ${code}, got ${String(error)}`)
}

export function nameOf(error: unknown): unknown {
  return (error as Error).name
}

export async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, 'the condition did not come true within 15 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/**
 * Which consumers of a box run in this process: all of them, or those that its start names. The others stay declared, so
 * their subscriptions stand, and what arrives here is stored for them: a process that runs them takes it from there.
 */
import { hintAt } from '../nearest.js'
import type { Lifecycle } from '../lifecycle.js'
import { invalid, names, optional, resolve } from '../options.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { ConsumerWorker } from './worker.js'

export interface StartOptions {
  /** Runs these consumers only; what arrives for the others is stored. Default: all of them. */
  consumers?: readonly string[] | undefined
}

export const START = {
  consumers: optional(names(), 'all of them'),
}

export interface Running {
  /** Starts the box with the consumers that are named; an unknown name is refused. Another start is the same one, or refused. */
  start(life: Lifecycle, options: StartOptions | undefined): Promise<void>
  has(name: string): boolean
  workers(): ReadonlyMap<string, ConsumerWorker>
  /** What a source does on arrival. */
  byMode(consumer: ConsumerDeclaration): 'store' | 'run' | 'direct'
}

export function createRunning(declared: ReadonlyMap<string, ConsumerWorker>): Running {
  let chosen: ReadonlySet<string> | undefined
  const has = (name: string): boolean => chosen === undefined || chosen.has(name)
  return {
    async start(life, given) {
      // `server.on('listening', box.start)` may pass something else.
      const isGiven = typeof given === 'object' && given !== null
      const { consumers } = resolve('start', isGiven ? given : {}, START)
      for (const name of consumers ?? []) checkDeclared(name, [...declared.keys()])
      if (life.begun) {
        if (consumers) checkSame(consumers, [...declared.keys()].filter(has))
        return life.start()
      }
      chosen = consumers && new Set(consumers)
      await life.start()
    },
    has,
    workers: () => new Map([...declared].filter(([name]) => has(name))),
    byMode({ name, options: { mode } }) {
      return mode === 'stored' || !has(name) ? 'store' : mode === 'inline' ? 'run' : 'direct'
    },
  }
}

function checkDeclared(name: string, names: readonly string[]): void {
  if (names.includes(name)) return
  const hint = hintAt(name, names, `there is ${names.join(', ') || 'none'}`)
  throw invalid(`start: the box has no consumer ${JSON.stringify(name)}; ${hint}`)
}

/** Whoever starts a box that runs, with other consumers than it was started with, would be told that those run. */
function checkSame(asked: readonly string[], running: readonly string[]): void {
  const others = [
    ...asked.filter((name) => !running.includes(name)),
    ...running.filter((name) => !asked.includes(name)),
  ]
  if (others.length === 0) return
  const runs = running.length > 0 ? running.join(', ') : 'no consumer'
  throw invalid(`start: the box is started already, and runs ${runs}; stop it before it runs others`)
}

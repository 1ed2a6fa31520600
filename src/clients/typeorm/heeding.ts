/**
 * What TypeORM does before it sends a statement may take its time: subscribers, listeners of entities, lookups. So the promises
 * of the manager's methods are watched, through which those of repositories go; and for query builders, what subscribers do.
 */
import type { Heeded } from '../heeded.js'

type Method = (this: object, ...args: unknown[]) => unknown
type Watched = { readonly [WITHIN]: Heeded }

interface Runner {
  readonly manager: object
  readonly broadcaster?: object
}

const WITHIN = Symbol('oncebox.within')

/** From now on the work of this runner is watched. */
export function heed({ manager, broadcaster }: Runner, within: Heeded): void {
  watch(manager, within, heedingMethod)
  if (broadcaster) watch(broadcaster, within, tellingMethod)
}

function watch(target: object, within: Heeded, wrap: Wrap): void {
  Object.defineProperty(target, WITHIN, { value: within })
  const prototype = Object.getPrototypeOf(target) as object
  let watched = prototypes.get(prototype)
  if (!watched) {
    watched = Object.create(prototype, Object.fromEntries(methodsOf(prototype, wrap))) as object
    prototypes.set(prototype, watched)
  }
  Object.setPrototypeOf(target, watched)
}

/** One for each class: there is a manager for each call of a handler. */
const prototypes = new WeakMap<object, object>()

type Wrap = (method: Method, name: string) => Method

function methodsOf(prototype: object, wrap: Wrap): [name: string, method: PropertyDescriptor][] {
  if (prototype === Object.prototype) return []
  const methods = methodsOf(Object.getPrototypeOf(prototype) as object, wrap)
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof value !== 'function' || name === 'constructor') continue
    methods.push([name, { value: wrap(value as Method, name), writable: true, configurable: true }])
  }
  return methods
}

function heedingMethod(method: Method): Method {
  return function (this, ...args) {
    const answer = method.apply(this, args)
    return answer instanceof Promise ? (this as Watched)[WITHIN].watch(answer) : answer
  }
}

const TELLS = /^broadcast.*Event$/

/** Such a method is given a list, to which it adds the promises of those whom it has told. */
function tellingMethod(method: Method, name: string): Method {
  if (!TELLS.test(name)) return method
  return function (this, ...args) {
    const answer = method.apply(this, args)
    const { promises = [] } = (args[0] ?? {}) as { readonly promises?: readonly PromiseLike<unknown>[] }
    for (const told of promises) (this as Watched)[WITHIN].begun(told)
    return answer
  }
}

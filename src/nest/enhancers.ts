/**
 * Guards and interceptors run around a handler. What of Nest's other enhancers cannot act here is refused at the start, as is
 * a guard that Nest would leave out without a word.
 */
import { read, type Constructor } from './decorators.js'
import type { FoundConsumer } from './discover.js'
import { invalid } from '../options.js'

/** Nest's own keys. */
const GUARDS = '__guards__'
const INTERCEPTORS = '__interceptors__'
const FILTERS = '__exceptionFilters__'
const PIPES = '__pipes__'
const PARAMETERS = '__routeArguments__'

export function checkEnhancers(consumer: FoundConsumer): void {
  for (const { key } of consumer.methods) {
    const where = `${consumer.target.name}.${key}`
    if (declared(consumer, key, FILTERS).length > 0) {
      throw invalid(
        `${where} has @UseFilters: exception filters do not run for messages, for one that swallows an error would make ` +
          `its message handled; take hooks.failed of the box, or an interceptor`,
      )
    }
    if (declared(consumer, key, PIPES).length > 0) {
      throw invalid(`${where} has @UsePipes: pipes do not run for messages; the schema of the message checks its data`)
    }
    if (hasParameterDecorators(consumer.target, key)) {
      throw invalid(`${where} has decorated parameters: a handler gets (message, ctx) as they are`)
    }
    for (const enhancer of [...declared(consumer, key, GUARDS), ...declared(consumer, key, INTERCEPTORS)]) {
      checkKnown(consumer, enhancer)
    }
  }
}

/** What stands on the class, and on the method. */
function declared({ target }: FoundConsumer, key: string, kind: string): readonly unknown[] {
  const method = (target.prototype as Record<string, object>)[key]!
  return [...(read<unknown[]>(kind, target) ?? []), ...(read<unknown[]>(kind, method) ?? [])]
}

/**
 * Nest looks for the instance of a guard in the module that has the consumer's class as a provider. Where it finds none, as
 * for `{ provide: 'other', useClass }`, the guard does not run, and nobody is told.
 */
function checkKnown({ target, wrapper }: FoundConsumer, enhancer: unknown): void {
  if (typeof enhancer !== 'function') return
  const instance = wrapper.instance as object | undefined
  const isItself = wrapper.token === target && (!instance || instance.constructor === target)
  if (isItself && wrapper.host?.injectables.has(enhancer)) return
  throw invalid(
    `${enhancer.name} cannot run before ${target.name}, because that is a custom provider: list the class itself, ` +
      `providers: [${target.name}]`,
  )
}

function hasParameterDecorators(target: Constructor, key: string): boolean {
  const { getMetadata } = Reflect as { getMetadata?(name: string, target: object, key: string): unknown }
  return getMetadata?.(PARAMETERS, target, key) !== undefined
}

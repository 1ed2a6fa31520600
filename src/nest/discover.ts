/** Finds the consumers of a box among the providers of the app, and refuses what would silently handle nothing. */
import type { DiscoveryService, MetadataScanner } from '@nestjs/core'
import { OnceboxError } from '../errors.js'
import { invalid } from '../options.js'
import { checkEnhancers } from './enhancers.js'
import {
  consumerMark,
  declaredConsumers,
  handleMarks,
  type Constructor,
  type ConsumerMark,
  type HandleMark,
} from './decorators.js'
import { getBoxToken, nameOf, type BoxName } from './tokens.js'

export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number]

export interface FoundConsumer {
  readonly mark: ConsumerMark
  readonly target: Constructor
  readonly wrapper: Wrapper
  readonly methods: readonly FoundMethod[]
}

export interface FoundMethod {
  readonly key: string
  readonly marks: readonly HandleMark[]
}

export interface Where {
  readonly discovery: DiscoveryService
  readonly scanner: MetadataScanner
}

/** The consumers of this box. Throws for a mistake in any consumer, of whichever box. */
export function discover(where: Where, box: BoxName | undefined): FoundConsumer[] {
  const providers = where.discovery.getProviders().filter((wrapper) => !wrapper.isAlias)
  checkBoxes(providers, box)
  const found = providers.flatMap((wrapper) => consumerIn(where.scanner, wrapper) ?? [])
  for (const wrapper of where.discovery.getControllers()) refuseController(where.scanner, wrapper)
  for (const { mark, target } of found) checkBoxOf(mark, target, providers)
  const ours = found.filter(({ mark }) => getBoxToken(mark.box) === getBoxToken(box))
  for (const consumer of ours) checkEnhancers(consumer)
  checkNames(ours)
  return ours
}

/** Consumers that are loaded, belong to this box, and are no provider: their messages would wait for ever. */
export function checkProvided(where: Where, box: BoxName | undefined): void {
  const providers = where.discovery.getProviders()
  const provided = new Set<unknown>(providers.flatMap((wrapper) => [wrapper.token, classOf(wrapper)]))
  for (const { target, mark } of declaredConsumers()) {
    if (getBoxToken(mark.box) !== getBoxToken(box) || provided.has(target)) continue
    throw invalid(
      `${target.name} is @Consumer(${JSON.stringify(mark.name)}) and no provider of a module: add it to the providers of ` +
        `one, or set unprovided: 'allow' if other processes run it`,
    )
  }
}

function consumerIn(scanner: MetadataScanner, wrapper: Wrapper): FoundConsumer | undefined {
  const target = classOf(wrapper)
  if (!target) return undefined
  const methods = methodsOf(scanner, target)
  const mark = consumerMark(target)
  if (!mark) {
    if (methods.length === 0) return undefined
    throw invalid(
      `${target.name}.${methods[0]!.key} has @Handle, and ${target.name} no @Consumer: nothing would call it`,
    )
  }
  if (methods.length === 0) {
    throw invalid(`${target.name} is @Consumer(${JSON.stringify(mark.name)}) and has no method with @Handle`)
  }
  return { mark, target, wrapper, methods }
}

function methodsOf(scanner: MetadataScanner, target: Constructor): FoundMethod[] {
  const prototype = target.prototype as Record<string, object>
  const names = scanner.getAllMethodNames(prototype)
  const found = names.map((key) => ({ key, marks: handleMarks(prototype[key]!) }))
  return found.filter(({ marks }) => marks.length > 0)
}

function refuseController(scanner: MetadataScanner, wrapper: Wrapper): void {
  const target = classOf(wrapper)
  if (!target || (!consumerMark(target) && methodsOf(scanner, target).length === 0)) return
  throw invalid(`${target.name} is a controller: a @Consumer is a provider of its own, so move its handlers to one`)
}

/** The class behind a provider: not the factory that makes an instance of it. */
function classOf(wrapper: Wrapper): Constructor | undefined {
  const { metatype, token } = wrapper
  const made = (wrapper.instance as { constructor?: unknown } | null | undefined)?.constructor
  const isFactory = wrapper.inject != null
  const known =
    isFactory || !metatype ? (made ?? (consumerMark(Object(token) as object) ? token : undefined)) : metatype
  return typeof known === 'function' && known !== Object && known.prototype
    ? (known as unknown as Constructor)
    : undefined
}

function checkBoxes(providers: readonly Wrapper[], box: BoxName | undefined): void {
  if (providers.filter(({ token }) => token === getBoxToken(box)).length < 2) return
  throw invalid(`OnceboxModule gives ${nameOf(box)} twice: give one of the two another name, forRoot({ name: … })`)
}

function checkBoxOf({ box }: ConsumerMark, target: Constructor, providers: readonly Wrapper[]): void {
  const token = getBoxToken(box)
  if (providers.some((wrapper) => wrapper.token === token)) return
  throw invalid(`${target.name} is a consumer of ${nameOf(box)}, which no OnceboxModule gives; check the name`)
}

function checkNames(found: readonly FoundConsumer[]): void {
  const names = new Map<string, FoundConsumer>()
  for (const one of found) {
    const other = names.get(one.mark.name)
    names.set(one.mark.name, one)
    if (!other) continue
    if (other.target === one.target) {
      const [first, second] = [other, one].map(({ wrapper }) => wrapper.host?.name)
      const problem = `${one.target.name} is a provider of ${first} and ${second}`
      const advice = 'provide it in one of them, and export it from there'
      const twice = 'that is a dynamic module which was made twice: keep it in a constant, and import that'
      throw new OnceboxError('CONSUMER_EXISTS', `${problem}: ${first === second ? twice : advice}`)
    }
    throw new OnceboxError(
      'CONSUMER_EXISTS',
      `${other.target.name} and ${one.target.name} are both @Consumer(${JSON.stringify(one.mark.name)}); give each its own name`,
    )
  }
}

import { checkNames, invalid } from '../options.js'

/** The options of a broker decide what it is: a source, a sink, or both. */
export interface Sides {
  /** What it takes, in words for people who gave something else. */
  readonly takes: string
  /** Declarations of options; one of `receives` makes it a source, one of `publishes` a sink. */
  readonly source: object
  readonly sink: object
  readonly receives: readonly string[]
  readonly publishes: readonly string[]
}

/** Refuses options that are unknown, or of the side that it is not. */
export function sidesOf(broker: string, given: object, sides: Sides): { isSource: boolean; isSink: boolean } {
  const { takes, source, sink, receives, publishes } = sides
  const has = (names: readonly string[]): boolean => names.some((name) => given[name as never] !== undefined)
  if (typeof given !== 'object' || given === null) throw invalid(`${broker} takes options: ${takes}`)
  const [isSource, isSink] = [has(receives), has(publishes)]
  if (isSource && isSink) checkNames(broker, given, { ...source, ...sink })
  else if (isSource) checkNames(`${broker} without ${publishes.join(', ')}, which is a source,`, given, source, sink)
  else if (isSink) checkNames(`${broker} without ${receives.join(', ')}, which is a sink,`, given, sink, source)
  else throw invalid(`${broker} takes ${takes}`)
  return { isSource, isSink }
}

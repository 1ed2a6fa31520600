/** Kafka as a sink: events go out in order, in requests that a broker takes with its default settings. */
import { createTurns } from '../../in-turn.js'
import { fromTheDestination } from '../send.js'
import type { Sink } from '../sink.js'
import type { ResolvedSink } from './options.js'
import { createLazyProducer } from './producer.js'
import { Publication } from './publication.js'

export function createSink(options: ResolvedSink): Sink & { readonly name?: string } {
  const producer = createLazyProducer(options)
  /** One request at a time: a second one could overtake the first, when that is sent again. */
  const inTurn = createTurns()
  return {
    ...(options.name !== undefined && { name: options.name }),
    publish: (batch, limits) =>
      inTurn(() => new Publication(batch, options, producer, limits).run()).catch(fromTheDestination),
    close: () => inTurn(() => producer.disconnect()),
  }
}

/** Deletes now what the janitor would delete by and by. */
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { prune as retain } from '../inbox/retain.js'
import type { Runtime } from '../runtime.js'

export function prune(runtime: Runtime, consumers: readonly ConsumerDeclaration[]): Promise<number> {
  return retain(runtime, consumers)
}

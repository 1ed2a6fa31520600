/** Deletes now what retention would delete by and by. */
import { writeAudit } from '../inbox/audit.js'
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { prune as retain } from '../inbox/retain.js'
import type { Runtime } from '../runtime.js'
import { checkSigned } from './signed.js'
import type { Signed } from './types.js'

export async function prune(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  options: Signed = {},
): Promise<number> {
  const { by, reason } = checkSigned('prune', options)
  const count = await retain(runtime, consumers)
  await writeAudit(runtime, { action: 'prune', detail: { count, reason }, by })
  return count
}

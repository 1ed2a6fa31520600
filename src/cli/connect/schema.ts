/** The name of the schema that a box of a config is on. */
import type { InboxTarget } from '../../brokers/handover.js'

export function schemaOf({ schema }: Pick<InboxTarget, 'schema'>): string {
  return schema.replace(/^"|"$/g, '').replaceAll('""', '"')
}

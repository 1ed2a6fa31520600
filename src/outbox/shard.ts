/** Shards: how the events of a sink are shared out among relays. SEND, HEALTH and `ob.register_sinks` know their number too. */
export const SHARDS = 32

/** FNV-1a of the key. Computed here, because PostgreSQL's own hashes may change from one version to the next. */
export function shardOf(key: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  return ((hash ^ (hash >>> 16)) >>> 0) % SHARDS
}

/** The commands of a consumer group, and their replies. */
import type { Connection, Reply } from './client.js'
import { codeOf } from './client.js'
import { compareIds } from './id.js'
import { OUR_PREFIX, type RedisEntry, type ResolvedSource } from './options.js'

export interface Group {
  /** Entries that nobody was given yet. Waits for some, for up to so long; `unblock` ends that. */
  readNew(blockMs: number): Promise<RedisEntry[]>
  /** Entries that were given to this consumer before and are not acknowledged, behind that id. */
  readOwn(after: string): Promise<Found>
  /** Entries that nobody has worked on for long, from that cursor. They are this consumer's then. */
  takeOver(cursor: string): Promise<Found & { readonly cursor: string }>
  /** Entries of this consumer, given to it once more. Those that are missing are gone, or no longer pending. */
  readAgain(ids: readonly string[]): Promise<Found>
  /**
   * As if they had been given to this consumer so long ago; 0 keeps them from being taken over. Answers those that are
   * no longer in the stream, as far as the server says so: a server before 7.0 does not.
   */
  setIdle(ids: readonly string[], idleMs: number): Promise<readonly string[]>
  /** What was trimmed before anybody was given it; undefined if the server cannot tell, as before 7.0. */
  findSkipped(): Promise<Skipped | undefined>
  acknowledge(ids: readonly string[]): Promise<void>
  unblock(): Promise<void>
  readonly isOpen: boolean
  close(): void
}

export interface Found {
  readonly entries: readonly RedisEntry[]
  /** Pending, but no longer in the stream: it was trimmed. */
  readonly gone: readonly string[]
}

/** Entries that the group was never given, and that are gone. */
export interface Skipped {
  /** How many. A server of 7.0 counts them for ever, a newer one until the group reads on. */
  readonly count: number
  /** The first entry that is left. */
  readonly before: string
}

/** For the server to answer what it need not wait for. */
const ANSWER_MS = 10_000
/** Consumers whose names we made up, and that are not used any more: their processes were killed. */
const FORGOTTEN_MS = 3_600_000
const CHUNK = 500

/**
 * Removes consumers by the beginning of their names, if they have nothing pending: what is pending would be lost with
 * its consumer, so look and removal are one.
 */
const RETIRE = `
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local is = {}
  for at = 1, #consumer, 2 do is[consumer[at]] = consumer[at + 1] end
  if string.sub(is.name, 1, #ARGV[2]) == ARGV[2] and is.pending == 0 and is.idle >= tonumber(ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], is.name)
  end
end`

/** `reader` waits for entries, so everything else goes through `commands`. */
export async function openGroup(
  options: ResolvedSource & { readonly begin: string },
  reader: Connection,
  commands: Connection,
): Promise<Group> {
  const { stream, group, consumer, batch, minIdleMs } = options
  await createGroup(options, commands)
  await retire(options, commands, OUR_PREFIX, Math.max(FORGOTTEN_MS, 10 * minIdleMs))
  const readerId = await reader.command(['CLIENT', 'ID'], ANSWER_MS)
  const read = ['XREADGROUP', 'GROUP', group, consumer, 'COUNT', String(batch)]
  const toEntries = (reply: Reply): Found => split(stream, reply)
  /** Those that are in the stream no more: the others were acknowledged by somebody else. */
  const missing = async (ids: readonly string[]): Promise<string[]> => {
    const left = await Promise.all(ids.map((id) => commands.command(['XRANGE', stream, id, id], ANSWER_MS)))
    return ids.filter((_, at) => (left[at] as Reply[]).length === 0)
  }

  return {
    async readNew(blockMs) {
      const block = String(Math.max(1, Math.floor(blockMs)))
      const reply = await reader.command([...read, 'BLOCK', block, 'STREAMS', stream, '>'], blockMs + ANSWER_MS)
      return [...toEntries(entriesOf(reply)).entries]
    },
    async readOwn(after) {
      return toEntries(entriesOf(await commands.command([...read, 'STREAMS', stream, after], ANSWER_MS)))
    },
    async takeOver(cursor) {
      const args = ['XAUTOCLAIM', stream, group, consumer, String(minIdleMs), cursor, 'COUNT', String(batch)]
      const [next, entries, deleted = []] = (await commands.command(args, ANSWER_MS)) as [Reply, Reply, Reply[]?]
      const found = toEntries(entries)
      return { entries: found.entries, gone: [...found.gone, ...deleted.map(String)], cursor: String(next) }
    },
    async readAgain(ids) {
      const found = toEntries(await commands.command(['XCLAIM', stream, group, consumer, '0', ...ids], ANSWER_MS))
      const known = new Set(found.entries.map(({ id }) => id))
      return { entries: found.entries, gone: await missing(ids.filter((id) => !known.has(id))) }
    },
    async setIdle(ids, idleMs) {
      const gone: string[] = []
      for (let at = 0; at < ids.length; at += CHUNK) {
        const some = ids.slice(at, at + CHUNK)
        const args = ['XCLAIM', stream, group, consumer, '0', ...some, 'IDLE', String(idleMs), 'JUSTID']
        const claimed = new Set(((await commands.command(args, ANSWER_MS)) as Reply[]).map(String))
        gone.push(...(await missing(some.filter((id) => !claimed.has(id)))))
      }
      return gone
    },
    async findSkipped() {
      const [about, groups] = await Promise.all(
        [
          ['XINFO', 'STREAM', stream],
          ['XINFO', 'GROUPS', stream],
        ].map((args) => commands.command(args, ANSWER_MS)),
      )
      const ours = (groups as Reply[]).map(fieldsOf).find(({ name }) => String(name) === group)
      return ours && skipped(fieldsOf(about!), ours)
    },
    async acknowledge(ids) {
      if (ids.length === 0) return
      await commands.command(['XACK', stream, group, ...ids], ANSWER_MS)
      if (options.remove) await commands.command(['XDEL', stream, ...ids], ANSWER_MS)
    },
    async unblock() {
      await commands.command(['CLIENT', 'UNBLOCK', String(readerId)], ANSWER_MS)
    },
    get isOpen() {
      return reader.isOpen && commands.isOpen
    },
    close() {
      reader.close()
      commands.close()
    },
  }
}

async function createGroup(
  { stream, group, begin }: Pick<ResolvedSource, 'stream' | 'group'> & { readonly begin: string },
  commands: Connection,
): Promise<void> {
  try {
    await commands.command(['XGROUP', 'CREATE', stream, group, begin, 'MKSTREAM'], ANSWER_MS)
  } catch (error) {
    if (codeOf(error) !== 'BUSYGROUP') throw error
  }
}

/** Housekeeping: where scripts are forbidden, names stay. */
export async function retire(
  { stream, group }: ResolvedSource,
  commands: Connection,
  prefix: string,
  idleMs: number,
): Promise<void> {
  const args = ['EVAL', RETIRE, '1', stream, group, prefix, String(idleMs)]
  try {
    await commands.command(args, ANSWER_MS)
  } catch (error) {
    if (codeOf(error) === undefined) throw error
  }
}

/** The reply to a read of one stream; null if there was nothing. */
function entriesOf(reply: Reply): Reply {
  return reply === null ? [] : (reply as [[Reply, Reply]])[0][1]
}

/** Names and values in turn. */
function fieldsOf(reply: Reply): Record<string, Reply> {
  const values = reply as Reply[]
  return Object.fromEntries(values.flatMap((name, at) => (at % 2 === 0 ? [[String(name), values[at + 1]!]] : [])))
}

/** A trim takes the oldest, so what the group was given is gone before anything else is. */
function skipped(stream: Record<string, Reply>, group: Record<string, Reply>): Skipped | undefined {
  const [added, read, first] = [stream['entries-added'], group['entries-read'], stream['first-entry']]
  if (added === undefined || read === null || read === undefined || !first) return undefined
  const count = Number(added) - Number(stream['length']) - Number(read)
  const before = String((first as Reply[])[0])
  if (count <= 0) return { count: 0, before }
  return compareIds(before, String(group['last-delivered-id'])) > 0 ? { count, before } : undefined
}

/** An entry that was deleted is a null, or has null for its fields. */
function split(stream: string, reply: Reply): Found {
  const entries: RedisEntry[] = []
  const gone: string[] = []
  for (const one of reply as ([Buffer, Buffer[] | null] | null)[]) {
    if (one === null) continue
    const [id, values] = one
    if (values === null) {
      gone.push(String(id))
      continue
    }
    const fields: [string, Buffer][] = []
    for (let at = 0; at < values.length; at += 2) fields.push([String(values[at]), values[at + 1]!])
    entries.push({ stream, id: String(id), fields: Object.fromEntries(fields) })
  }
  return { entries, gone }
}

/** What in the configuration of the server would lose entries, each with the setting to change. */
import type { Connection } from './client.js'
import { codeOf } from './client.js'
import type { ResolvedSource } from './options.js'

const ANSWER_MS = 10_000

export async function findWarnings({ stream }: ResolvedSource, commands: Connection): Promise<string[]> {
  try {
    const [memory, persistence, lifeMs] = await Promise.all([
      commands.command(['INFO', 'memory'], ANSWER_MS),
      commands.command(['INFO', 'persistence'], ANSWER_MS),
      commands.command(['PTTL', stream], ANSWER_MS),
    ])
    const is = new Map([...linesOf(memory), ...linesOf(persistence)])
    const warnings: string[] = []
    const policy = is.get('maxmemory_policy') ?? ''
    if (policy.startsWith('allkeys-') && is.get('maxmemory') !== '0') {
      warnings.push(
        `Redis deletes whole streams when it is short of memory; set maxmemory-policy to noeviction, not ${policy}`,
      )
    }
    if (Number(lifeMs) >= 0)
      warnings.push(`Redis deletes the stream ${stream} when its time is up; take it away with PERSIST`)
    if (is.get('aof_enabled') === '0') {
      warnings.push(
        'a restart of Redis loses what it took since its last snapshot, if it makes any; set appendonly to yes',
      )
    }
    return warnings
  } catch (error) {
    // Who may not ask is not warned.
    if (codeOf(error) === undefined) throw error
    return []
  }
}

function linesOf(info: unknown): [string, string][] {
  const lines = String(info).split('\r\n')
  return lines.flatMap((line) => {
    const at = line.indexOf(':')
    return at > 0 ? [[line.slice(0, at), line.slice(at + 1)] as [string, string]] : []
  })
}

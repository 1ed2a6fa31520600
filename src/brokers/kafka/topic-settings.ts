/** What in the settings of topics will lose messages. */
import { DAY_MS } from '../../figures.js'
import type { KafkaAdmin } from './client.js'
import type { ResolvedSource } from './options.js'

/** `ConfigResourceTypes.TOPIC` of the protocol. */
const TOPIC = 2

/** A line for each topic that loses messages by its settings. */
export async function settingsProblems(admin: KafkaAdmin, wanted: ResolvedSource['topics']): Promise<string[]> {
  const topics = await topicsOf(admin, wanted)
  if (!admin.describeConfigs || topics.length === 0) return []
  const resources = topics.map((name) => ({ type: TOPIC, name, configNames: ['cleanup.policy', 'retention.ms'] }))
  const described = await admin.describeConfigs({ resources, includeSynonyms: false })
  return described.resources.flatMap(({ resourceName, configEntries }) =>
    problemsOf(resourceName, new Map(configEntries.map(({ configName, configValue }) => [configName, configValue]))),
  )
}

async function topicsOf(admin: KafkaAdmin, wanted: ResolvedSource['topics']): Promise<string[]> {
  if (wanted.every((topic) => typeof topic === 'string')) return [...wanted]
  const there = await admin.listTopics()
  return there.filter((name) => wanted.some((topic) => (typeof topic === 'string' ? topic === name : topic.test(name))))
}

function problemsOf(topic: string, settings: ReadonlyMap<string, string>): string[] {
  const problems: string[] = []
  const policy = settings.get('cleanup.policy') ?? ''
  const retentionMs = Number(settings.get('retention.ms') ?? -1)
  if (policy.includes('compact')) {
    problems.push(`topic ${topic} is compacted: of one key only the last message is kept; set cleanup.policy to delete`)
  }
  if (policy.includes('delete') && retentionMs >= 0 && retentionMs < DAY_MS) {
    const minutes = Math.round(retentionMs / 60_000)
    const outage = 'and a longer outage loses some; raise retention.ms'
    problems.push(`topic ${topic} keeps messages for ${minutes} minutes, ${outage}`)
  }
  return problems
}

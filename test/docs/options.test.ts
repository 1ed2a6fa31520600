/** The tables of options in the pages, and the doc comments that editors show, say what the declarations do. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { BOX } from '../../src/box-options.js'
import * as kafka from '../../src/brokers/kafka/options.js'
import { LINK } from '../../src/brokers/link/index.js'
import * as nats from '../../src/brokers/nats/options.js'
import * as rabbitmq from '../../src/brokers/rabbitmq/options.js'
import * as redis from '../../src/brokers/redis/options.js'
import * as sqs from '../../src/brokers/sqs/options.js'
import { CUSTOM } from '../../src/brokers/webhook/custom.js'
import * as webhook from '../../src/brokers/webhook/options.js'
import { DASHBOARD } from '../../src/dashboard/options.js'
import { MOUNT } from '../../src/http/handler.js'
import { ENDPOINT } from '../../src/idempotency/options.js'
import { CONSUMER } from '../../src/inbox/options.js'
import { FROM, QUARANTINE } from '../../src/inbox/origin.js'
import { MONITORING } from '../../src/monitoring/options.js'
import { LIFECYCLE } from '../../src/nest/options.js'
import type { Option } from '../../src/options.js'
import { SINK } from '../../src/outbox/options.js'
import { POLICY } from '../../src/retry.js'
import { readPage, ROOT } from './markdown.js'

type Declared = Readonly<Record<string, Option<never, unknown>>>

/** Each declaration with the table it belongs to, the nth of its page, and the file that has its interfaces. */
const TABLES: [what: string, page: string, n: number, declared: object, file: string][] = [
  ['a box', 'options.md', 0, BOX, 'box-options.ts'],
  ['a consumer', 'options.md', 1, CONSUMER, 'inbox/options.ts'],
  ['retry', 'retries-and-dead-letters.md', 0, POLICY, 'retry.ts'],
  ['from()', 'sources-and-sinks.md', 0, FROM, 'inbox/origin.ts'],
  ['quarantine', 'sources-and-sinks.md', 1, QUARANTINE, 'inbox/origin.ts'],
  ['to()', 'outbox.md', 1, SINK, 'outbox/options.ts'],
  ['link', 'link.md', 0, LINK, 'brokers/link/index.ts'],
  ['an endpoint', 'idempotency.md', 0, ENDPOINT, 'idempotency/options.ts'],
  ['a dashboard', 'dashboard.md', 0, DASHBOARD, 'dashboard/options.ts'],
  ['a mount', 'frameworks.md', 0, MOUNT, 'http/handler.ts'],
  ['monitoring', 'monitoring.md', 0, MONITORING, 'monitoring/options.ts'],
  ['the Nest module', 'nest.md', 0, LIFECYCLE, 'nest/options.ts'],
  ['a webhook', 'webhooks.md', 0, webhook.SOURCE, 'brokers/webhook/options.ts'],
  ['a webhook with verify', 'webhook-senders.md', 0, CUSTOM, 'brokers/webhook/custom.ts'],
  ['a webhook to send', 'webhooks.md', 1, webhook.SINK, 'brokers/webhook/options.ts'],
  ...Object.entries({ kafka, nats, rabbitmq, redis, sqs }).flatMap(([broker, { SOURCE, SINK }]) => {
    const file = `brokers/${broker}/options.ts`
    const tables: (typeof TABLES)[number][] = [
      [`${broker}, a source`, `${broker}.md`, 0, SOURCE, file],
      [`${broker}, a sink`, `${broker}.md`, 1, SINK, file],
    ]
    return tables
  }),
]

test.each(TABLES)('the table of %s in docs/%s has its options, each with its default', (_, page, n, declared) => {
  const rows = tablesOf(readPage(`docs/${page}`))[n]!
  // "as above, and so are `b` and `c`" stands for the rows of another table.
  const above = rows.filter(({ meaning }) => meaning.startsWith('as above'))
  const elsewhere = above.flatMap(({ name, meaning }) => [
    name,
    ...[...meaning.matchAll(/`(\w+)`/g)].map(([, of]) => of),
  ])
  const own = rows.filter((row) => !above.includes(row))
  expect([...own.map(({ name }) => name), ...elsewhere].sort()).toEqual(Object.keys(declared).sort())
  const defaults = own.map(({ name }) => ({ name, byDefault: printed(name, (declared as Declared)[name]!) }))
  expect(own.map(({ name, byDefault }) => ({ name, byDefault }))).toEqual(defaults)
})

test.each(TABLES)(
  'a doc comment of %s that tells a default tells the one that there is',
  (...[, , , declared, file]) => {
    const source = readFileSync(path.join(ROOT, 'src', file), 'utf8')
    const told = [...source.matchAll(/\/\*\*((?:(?!\*\/).)*?)\*\/\s+(\w+)\?:/gs)].flatMap(
      ([, comment = '', name = '']) => {
        const [, words] =
          /Default: ([^.;,]+?)(?: for| at|[.;,]|$)/.exec(comment.replaceAll(/\s*\n\s*\* ?/g, ' ').trim()) ?? []
        return words === undefined ? [] : [{ name, words }]
      },
    )
    for (const [name, option] of Object.entries(declared as Declared)) {
      if (!option.byDefault || !('value' in option.byDefault)) continue
      const expected = printed(name, option).replaceAll('`', '')
      const found = told.filter((one) => one.name === name).map(({ words }) => words)
      if (found.length > 0) expect(found, name).toContain(expected)
    }
  },
)

interface Row {
  readonly name: string
  readonly byDefault: string
  readonly meaning: string
}

/** Of tables with the columns option, default and meaning. */
function tablesOf(page: string): Row[][] {
  const tables = page.matchAll(/^\| option +\| default +\| meaning +\|\n\|[ |-]+\|\n((?:\|.*\|\n)+)/gm)
  return [...tables].map(([, rows = '']) =>
    rows
      .trimEnd()
      .split('\n')
      .map((row) => {
        const [, name = '', byDefault = '', meaning = ''] = /^\| `(\w+)` +\|(.*?)\| (.*) \|$/.exec(row) ?? []
        return { name, byDefault: byDefault.trim(), meaning: meaning.trim() }
      }),
  )
}

function printed(name: string, { byDefault }: Option<never, unknown>): string {
  if (byDefault === undefined) return ''
  if ('words' in byDefault) return byDefault.words
  const { value } = byDefault
  if (typeof value === 'number') return printNumber(name, value)
  if (typeof value === 'string') return `\`'${value}'\``
  if (typeof value !== 'object' || value === null) return `\`${String(value)}\``
  const inside = Object.entries(value).map(([of, one]) => `${of}: ${String(one)}`)
  return `\`{ ${inside.join(', ')} }\``
}

function printNumber(name: string, value: number): string {
  if (/Bytes$/.test(name)) return `${value / 1_048_576} MiB`
  if (value > 0 && value % 86_400_000 === 0) return `${value / 86_400_000} days`
  return value.toLocaleString('en').replaceAll(',', ' ')
}

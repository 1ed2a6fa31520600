/**
 * What mends a finding of the doctor, in words of the command line. What has no command keeps the doctor's own words, which are SQL
 * or a call.
 */
import type { Finding } from '../../admin/index.js'
import { flagsOf, shellWord, type ConnectionOptions } from '../connect/place.js'

/** A command without its `oncebox`, and what to say beside it. */
type Remedy = readonly [words: string, beside?: string]

/** A figure of the finding, or any text, as a word of a shell. */
type Word = (text: string) => string

/** Undefined where the doctor's own words are better. */
type Prescribe = (name: Word, finding: Finding, word: Word) => readonly Remedy[] | undefined

const run = (consumer: string): Remedy => [`work --consumers ${consumer}`, 'where the config of the project is']
const migrate: Prescribe = () => [['migrate up']]
const rebuilt: Prescribe = (_, { fix }) =>
  fix.includes('migrationSql(') ? [['migrate sql', 'prints it: restore it from there']] : undefined

/** By the codes of docs/doctor.md. */
export const REMEDIES: Readonly<Record<string, Prescribe>> = {
  'schema-missing': migrate,
  'schema-outdated': migrate,
  'object-missing': rebuilt,
  'object-changed': rebuilt,
  // Where no grant helps, as with row-level security, the doctor has said SQL.
  'rights-missing': (_, { fix }) =>
    fix.includes('grant ')
      ? [['migrate sql --roles', `prints SQL to run again, then: ${fix.slice(fix.indexOf('grant '))}`]]
      : undefined,
  'consumer-unattended': (name) => [
    run(name('consumer')),
    [`consumer rm ${name('consumer')}`, 'if it is gone for good; says what waits'],
  ],
  'consumer-behind': (name) => [[`work --consumers ${name('consumer')}`, 'one process more; or raise its concurrency']],
  'consumer-paused': (name) => [[`consumer resume ${name('consumer')}`]],
  'leases-expired': (name) => [run(name('consumer'))],
  'retention-behind': () => [['prune']],
  'dead-letters': (name) => [
    [`dead retry --consumer ${name('consumer')}`],
    [`dead discard --consumer ${name('consumer')} --reason 'given up'`, 'or this'],
  ],
  'keys-blocked': (name, { figures: { state } }) =>
    state === 'dead'
      ? [
          [`dead retry --consumer ${name('consumer')}`],
          [`dead discard --consumer ${name('consumer')} --reason 'given up'`, 'or this: later ones pass'],
        ]
      : state === 'quarantined'
        ? unanswered(name('consumer'))
        : undefined,
  'effects-unanswered': (name) => unanswered(name('consumer')),
  'sink-unattended': (name) => [
    ['work', 'where the config of the project attaches it'],
    [`sink rm ${name('sink')}`, 'if it is gone for good'],
  ],
  'outbox-not-draining': (name) => [[`outbox ls --sink ${name('sink')} --state pending`, 'has the last error of each']],
  'relay-leases-expired': () => [['work', 'where the config of the project attaches it: it takes them over']],
  'events-dead': (name) => [
    [`outbox retry --sink ${name('sink')}`],
    [`outbox discard --sink ${name('sink')} --reason 'given up'`, 'or this'],
  ],
  'messages-quarantined': (name, { figures: { consumer, reason } }) => {
    const which = `--why ${name('reason')}${consumer === '' ? '' : ` --consumer ${name('consumer')}`}`
    if (reason === 'conflict') {
      return [
        [
          `quarantine ls ${which} --whole`,
          'each has the id of a message with other data: oncebox messages show <id> --data has that one',
        ],
        [
          `quarantine discard ${which} --reason 'looked at'`,
          'once what is to be handled has been sent under another id',
        ],
      ]
    }
    const released: Remedy = [`quarantine release ${which}`, 'what can be handled now']
    // What has no id of its own will not have one later; what a consumer's identity has refused may.
    const isHopeless = reason === 'unmapped' || (reason === 'no-id' && consumer === '')
    return [
      [`quarantine ls ${which}`],
      ...(isHopeless ? [] : [released]),
      [`quarantine discard ${which} --reason 'looked at'`, 'what never can'],
    ]
  },
  'quarantine-full': (_, { figures: { producers = '[]' } }, word) => {
    const sources = (JSON.parse(String(producers)) as string[]).map(word)
    return sources.length === 0
      ? [['quarantine ls', 'then discard or release what came through that source']]
      : sources.flatMap((source): Remedy[] => [
          [`quarantine ls --source ${source}`],
          [`quarantine discard --source ${source} --reason 'looked at'`, 'or release what can be handled now'],
        ])
  },
}

function unanswered(consumer: string): Remedy[] {
  return [
    [`quarantine ls --why effect-unknown --consumer ${consumer}`],
    [`effects answer <effect> --consumer ${consumer} --id <id> --happened`, 'or --did-not-happen, for each'],
  ]
}

/** The fix of a finding as lines: commands that lead to the same database, else what the doctor has said. */
export function fixOf(finding: Finding, options: Partial<ConnectionOptions>): string {
  let copyable = true
  // What cannot be copied from a terminal leaves the doctor its own words, and so does the empty text, which no option takes.
  const word: Word = (text) => {
    const quoted = shellWord(text)
    copyable &&= quoted !== undefined && text !== '' && !quoted.startsWith('-')
    return quoted ?? ''
  }
  const name: Word = (figure) => word(String(finding.figures[figure]))
  const remedies = REMEDIES[finding.code]?.(name, finding, word)
  if (remedies === undefined || !copyable) return finding.fix
  return remedies
    .map(
      ([words, beside]) => `oncebox ${words}${flagsFor(words, options)}${beside === undefined ? '' : `   # ${beside}`}`,
    )
    .join('\n')
}

/** `work` runs the box of the config, on the database of the config; SQL is printed without one. */
function flagsFor(words: string, { schema, config, ...options }: Partial<ConnectionOptions>): string {
  if (words.startsWith('work')) return flagsOf({ config })
  return words.startsWith('migrate sql') ? flagsOf({ schema, config }) : flagsOf({ ...options, schema, config })
}

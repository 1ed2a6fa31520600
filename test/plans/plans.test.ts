/**
 * Plans: many comments say that the form of a statement fixes its plan. Here the server says so itself, on tables that are
 * full, with the plan that holds for every parameter: that is the one that a connection which lives long goes by.
 */
import { expect, test } from 'vitest'
import { exported } from '../interleavings/statements.js'
import { explain } from './finder.js'
import { useFullTables } from './full-tables.js'
import { SAMPLES, type Sample } from './samples.js'

const tables = useFullTables('plans')
const bound = (text: string): string => tables.bind(text).replaceAll('to_box.', tables.bind('ob.'))

/** Tables that grow with the messages. */
const LARGE = ['message', 'work', 'handled', 'attempt', 'effect', 'quarantine', 'outbox', 'delivery']
/** A statement about a few messages reads some rows of each, never as many as there are. */
const FEW = 5_000

/** What is wrong with the plan of a statement, in words. */
async function wrongWith(name: string, { text, given, relies, whole }: Sample, without?: string): Promise<string[]> {
  const { scanned, indexes, rows } = await explain(tables.client, bound(text), given, without)
  const read = LARGE.filter((table) => whole[table] === undefined)
  return [
    ...read.filter((table) => scanned.includes(table)).map((table) => `${name} scans ${table}`),
    ...read
      .filter((table) => !scanned.includes(table) && (rows.get(table) ?? 0) > FEW)
      .map((table) => `${name} reads ${rows.get(table)} rows of ${table}`),
    ...relies
      .filter((index) => !indexes.includes(index))
      .map((index) => `${name} does not use ${index}, but ${indexes.join(', ')}`),
  ]
}

test('every statement has a sample', async () => {
  const texts = new Map<string, string>()
  for (const [name, value] of await exported()) {
    const parts = typeof value === 'string' ? { '': value } : (value as Record<string, string>)
    for (const [way, text] of Object.entries(parts))
      if (/^\s*(with|select|insert|update|delete)\b/.test(text)) texts.set(way === '' ? name : `${name} ${way}`, text)
  }
  expect([...texts.keys()].filter((name) => SAMPLES.get(name)?.text !== texts.get(name))).toEqual([])
  expect([...SAMPLES.keys()].filter((name) => !texts.has(name))).toEqual([])
})

test('no statement reads a large table as a whole, and each uses the indexes that it relies on', async () => {
  const wrong: string[] = []
  for (const [name, sample] of SAMPLES) wrong.push(...(await wrongWith(name, sample)))
  expect(wrong).toEqual([])
})

test.for<[index: string, statement: string]>([
  ['work_due', 'CLAIM'],
  ['message_received', 'PRUNABLE'],
  ['delivery_live', 'READ_SHARDS'],
  ['quarantine_reason', 'QUARANTINED_OF newest'],
])('without %s, %s is found to read too much', async ([index, name]) => {
  const sample = { ...SAMPLES.get(name)!, relies: [] }
  expect(await wrongWith(name, sample)).toEqual([])
  expect(await wrongWith(name, sample, tables.bind(`ob.${index}`))).toEqual([
    expect.stringMatching(/ scans | reads \d+ rows /),
  ])
})

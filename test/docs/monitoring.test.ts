/** The page about monitoring lists every metric and every alert, as they are declared. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { declarationOf, METRIC_NAMES } from '../../src/metrics/declarations.js'
import { prometheusName } from '../../src/metrics/prometheus.js'
import { readPage, ROOT } from './markdown.js'

const page = readPage('docs/monitoring.md')

function rowsUnder(heading: string): string[][] {
  const [, section = ''] = new RegExp(`^## ${heading}\\n([^]*?)(?=^## |$(?![^]))`, 'm').exec(page) ?? []
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

test.for<[heading: string, database: boolean]>([
  ['Counted by the process', false],
  ['Read from the database', true],
])('%s: each metric with its kind, its labels and what it means', ([heading, database]) => {
  const own = METRIC_NAMES.filter((name) => (declarationOf(name).database === true) === database)
  expect(rowsUnder(heading)).toEqual(
    own.map((name) => {
      const { kind, labels, help } = declarationOf(name)
      return [`\`${prometheusName(name)}\``, kind, labels.join(', '), help]
    }),
  )
})

test('every alert is listed', () => {
  const rules = readFileSync(path.join(ROOT, 'monitoring/prometheus-alerts.yml'), 'utf8')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => `\`${name}\``)
  expect(rowsUnder('Alerts').map(([name]) => name)).toEqual(alerts)
})

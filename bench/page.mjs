/**
 * docs/benchmarks.md and its charts, from the results in bench/results.
 *
 *   npm run bench:page               writes them
 *   npm run bench:page -- --check    exits with 1 if there is something to write
 *   npm run bench:all                measures everything first: about forty minutes on a machine that does nothing else
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as prettier from 'prettier'
import {
  brokerChart,
  brokerTable,
  checksTable,
  limitChart,
  limitTable,
  peerCharts,
  roundTable,
} from './page/charts.mjs'
import { clientMethod, clientTable } from './page/clients.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const [peers, limit, brokers, clients] = ['peers', 'limit', 'brokers', 'clients'].map((name) =>
  JSON.parse(readFileSync(`${root}bench/results/${name}.json`, 'utf8')),
)
const charts = { ...peerCharts(peers), limit: limitChart(limit), brokers: brokerChart(brokers) }
const PAGE = 'docs/benchmarks.md'
const page = await prettier.format(pageText(), { ...(await prettier.resolveConfig(root + PAGE)), parser: 'markdown' })
const files = { [PAGE]: page }
for (const [name, svg] of Object.entries(charts)) files[`docs/charts/${name}.svg`] = svg

const changed = Object.entries(files).filter(([file, text]) => read(file) !== text)
if (process.argv.includes('--check')) {
  for (const [file] of changed) console.error(`${file} is not what the results say: run \`npm run bench:page\``)
  process.exitCode = changed.length > 0 ? 1 : 0
} else {
  mkdirSync(`${root}docs/charts`, { recursive: true })
  for (const [file, text] of changed) writeFileSync(root + file, text)
}

function read(file) {
  try {
    return readFileSync(root + file, 'utf8')
  } catch {
    return undefined
  }
}

function pageText() {
  return `# Benchmarks

What oncebox does on two cores, beside what others do there in the same run. Everything here is written by a program from
results that are committed with it; \`npm run bench:all\` measures them again on your machine and rewrites this page.

- Ratios say more than rates: rates move with the machine, and with what else it does. Contenders work by turns, and
  every figure is the median of several repeats, with the least and the greatest.
- Every commit is durable: \`fsync\` and \`synchronous_commit\` are on.
- What each contender promises differs, and is in the table below. A fast one that may run a message twice, or that fails a
  hundred messages for one, is not the same thing.
- What helped, and what did not: [performance](performance.md).

## Handling messages

${measured(peers)} Every contender has a process and a database of its own, on Node.js ${peers.node}.

${chart('handling', 'Bars: messages handled per second by each contender, warm and cold.')}

${contendersTable()}

${chart('cpu', 'Bars: CPU time of Node.js and PostgreSQL for each message.')}

Warm, one INSERT for each message of 200 bytes. The write-ahead log is that of storing and handling together:

${roundTable(roundOf('warm'))}

Cold: the first messages of a new process on an empty database, with the dead rows that they leave behind in the contender's
own tables:

${roundTable(roundOf('cold'))}

What the handler does, and how large messages are, changes who is how fast:

${chart('handlers', 'Bars: messages handled per second, by what the handler does.')}

${chart('payloads', 'Bars: messages handled per second, by the size of a message.')}

Where one statement can do the work of many messages, a handler may get them all at once:

${chart('batches', 'Bars: messages handled per second in batches of 1 000.')}

## Storing messages

From the same run: \`box.receive\`, \`addJobs\`, \`insert\`, and one \`INSERT … ON CONFLICT DO NOTHING\` of the naive inbox. A job is one
row; a message of oncebox is checked, compared with what is known under its id, and written for each of its consumers.

${chart('storing', 'Bars: messages stored per second, one batch after the other and four in flight.')}

${roundTable(roundOf('storing, four in flight'))}

Most callers have one message at a time: 16 calls in flight, of \`box.receive\`, \`addJob\`, \`send\`, and of the same INSERT.

${chart('single', 'Bars: messages stored per second, one at a time.')}

${roundTable(roundOf('storing, message by message'))}

## Ratios to the peers

${checksTable(peers.checks)}

## Ratios to the limit

The limit is the same durable work in SQL by hand, fenced in the same way; \`bench/limit.mjs\` says what it does and does not.
${measured(limit)}

${chart('limit', 'Bars: the library beside its limit, for each shape of work.')}

${limitTable(limit)}

## From a broker

Brokers run on the same two cores. The naive consumer inserts and then acknowledges, and doubles after a crash; \`dedup\` does
both in a transaction with a row for the id. \`inline\`, \`together\` and \`stored\` are a box; \`onward\` is a box whose handler sends an
event too, which goes through the outbox back to the broker. SQS is an emulator in Node.js, which takes most of the CPU there.
${measured(brokers)}

${chart('brokers', 'Bars: messages per second from each broker, by hand and with a box.')}

${brokerTable(brokers)}

## Database clients

CPU time of Node.js for one INSERT, as users of the client write it: in a transaction that the client has begun (own), and on a
loan, as handlers do it (lent). What is over its own is what the binding costs; to lend and give back alone is bind. Handled is a
message in a group, claimed, handled with that INSERT and settled. Each client has a process of its own. ${clientMethod(clients)}
${measured(clients)}${inUse(clients)}

${clientTable(clients)}
`
}

function roundOf(name) {
  return peers.rounds.find((round) => round.name === name)
}

function chart(name, words) {
  return charts[name] ? `![${words}](charts/${name}.svg)` : ''
}

/** The command, and what it ran on. */
function measured({ command, commit, at, machine, versions, postgres, repeats }) {
  const server = `PostgreSQL ${postgres.server_version.replace(/ .*/, '')}`
  return `Measured by \`${command}\` (${repeats} repeats) on ${at.slice(0, 10)} at ${commit}: ${machine.cpu}, ${machine.cores} cores,
${machine.memoryGb} GB, ${machine.os.replace(/ x64$/, '')}, ${server}, Node.js ${versions.node.slice(1)}.`
}

/** Others that use the machine move CPU times of single statements too. */
function inUse({ machine }) {
  return machine.load > 1.5 ? ` Others used the machine meanwhile (load ${machine.load}): figures are rough.` : ''
}

function contendersTable() {
  const rows = Object.entries(peers.contenders).map(([name, { version, what }]) => {
    const own = /^(oncebox|by hand|naive)/.test(name)
    return `| ${name} | ${own ? '' : version} | ${what} |`
  })
  return ['| contender | version | what it promises |', '| --- | --- | --- |', ...rows].join('\n')
}

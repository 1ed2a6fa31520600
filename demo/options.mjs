/** The command line of the demo. */
import { parseArgs } from 'node:util'
import { randomInt } from 'node:crypto'

const HELP = `npm run demo -- [options]

Places orders, carries their events over a link that duplicates, delays and reorders them, and kills the worker
processes that handle them, again and again. Then counts what was done twice and what was lost: by a naive consumer, and
by oncebox.

  --messages N     how many orders (default 1000, about half a minute; 300 on PGlite)
  --rate N         orders per second (default 60)
  --seed S         repeats the same orders, duplicates, delays and kills
  --database URL   a PostgreSQL to use, or the word pglite (default: DATABASE_URL, else a private server)
  --dashboard      shows the boxes in a browser, and stays until Ctrl-C
  --port N         the port of the dashboard (default 4680)
  --json           the result as JSON
  --verbose        what the workers have to say, too
  --help

Exit code: 0 if oncebox doubled and lost nothing, 1 if it did, 2 usage, 4 no connection, 130 interrupted.

Example: npm run demo -- --messages 500 --seed 42
`

export function readOptions() {
  let values
  try {
    ;({ values } = parseArgs({
      options: {
        messages: { type: 'string' },
        rate: { type: 'string', default: '60' },
        seed: { type: 'string', default: String(randomInt(1_000_000)) },
        database: { type: 'string', default: process.env.DATABASE_URL },
        dashboard: { type: 'boolean', default: false },
        port: { type: 'string' },
        json: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }))
  } catch (error) {
    refuse(error.message)
  }
  if (values.help) {
    process.stdout.write(HELP)
    process.exit(0)
  }
  if (values.dashboard && values.json) refuse('--json ends with its result, and --dashboard stays: choose one')
  if (values.port !== undefined && !values.dashboard) refuse('--port is that of the dashboard: say --dashboard too')
  if (values.verbose) process.env.ONCEBOX_DEMO_VERBOSE = '1'
  return {
    orders: values.messages === undefined ? undefined : wholeNumber('messages', values.messages),
    perSecond: wholeNumber('rate', values.rate),
    seed: values.seed,
    database: values.database || undefined,
    json: values.json,
    dashboard: values.dashboard,
    port: values.port === '0' ? 0 : wholeNumber('port', values.port ?? '4680'),
  }
}

function wholeNumber(name, text) {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1 || number > 1_000_000) {
    refuse(`--${name} must be a whole number from 1 to 1000000, not '${text}'`)
  }
  return number
}

function refuse(why) {
  process.stderr.write(`${why}\nSee: npm run demo -- --help\n`)
  process.exit(2)
}

/** `oncebox status`: how many messages there are, and how far behind consumers are. */
import type { Counts, Status } from '../../admin/index.js'
import { command, type Context } from '../command.js'
import { EXIT, type ExitCode } from '../exit.js'
import { duration, flag, integer as whole } from '../option.js'
import { showDuration, showTime } from '../output/duration.js'
import { openScreen } from '../output/screen.js'
import { cut } from '../output/width.js'
import { boolean, integer, number, object, record, time } from '../shape.js'
import { waitFor } from '../shared/wait.js'
import { createHistory, statusLines, type History } from '../shared/status-table.js'

const COUNTS = {
  ...{
    pending: integer,
    processing: integer,
    handled: integer,
    dead: integer,
    quarantined: integer,
    discarded: integer,
  },
  ...{ lagMs: number, 'estimated?': boolean },
}

export const status = command({
  noun: 'status',
  summary: 'Count messages by consumer and state, and say how far behind each consumer is.',
  details: [
    'With --max-lag the command ends with 3 if something is further behind. A ~ stands before what was estimated because there is too much to count.',
  ],
  example: 'oncebox status --watch',
  options: {
    watch: flag('Go on until Ctrl-C, with the course of lag and backlog.'),
    interval: duration('How often to look, with --watch.', 2_000, '2s'),
    times: whole('With --watch: look so often, then end.', { least: 1 }),
    maxLag: duration('End with 3 if something waits for longer than this.'),
  },
  connects: true,
  raw: true,
  exits: [EXIT.unhealthy],
  output: object({
    at: time,
    maxLagMs: number,
    consumers: record(object({ ...COUNTS, 'paused?': boolean })),
    outbox: record(object(COUNTS)),
  }),
  async run(context) {
    const { box, where } = await context.connect()
    const read = (): Promise<Status> => box.admin.status()
    if (context.options.watch) return watch(context, read, where)
    const now = await read()
    print(context, now)
    return judge(context, now)
  },
})

interface Options {
  readonly interval: number
  readonly times: number | undefined
  readonly maxLag: number | undefined
}

type StatusContext = Context<Options, unknown>

function print({ out, options }: StatusContext, now: Status, history?: History): void {
  if (out.json) {
    out.document({ at: new Date(), maxLagMs: maxLagOf(now), ...now })
    return
  }
  for (const [at, { columns, rows }] of statusLines(now, { maxLagMs: options.maxLag, history }).entries()) {
    if (at > 0) out.line('')
    out.table(columns, rows)
  }
  if (Object.keys(now.consumers).length === 0) out.note('no consumer is registered yet: box.start() does it')
}

function judge({ out, options }: StatusContext, now: Status): ExitCode {
  const { maxLag } = options
  if (maxLag === undefined) return EXIT.ok
  const late = lagsOf(now).filter(({ lagMs }) => lagMs > maxLag)
  for (const { who, lagMs } of late) {
    out.note(`${who} is ${showDuration(lagMs)} behind, which is more than --max-lag ${showDuration(maxLag)}`)
  }
  return late.length > 0 ? EXIT.unhealthy : EXIT.ok
}

/** Who may be behind, with the name that the table has. */
function lagsOf({ consumers, outbox }: Status): { readonly who: string; readonly lagMs: number }[] {
  const named = (what: string, all: Readonly<Record<string, Counts>>) =>
    Object.entries(all).map(([name, { lagMs }]) => ({ who: `${what} ${name}`, lagMs }))
  return [...named('consumer', consumers), ...named('outbox type', outbox)]
}

function maxLagOf(now: Status): number {
  return Math.max(0, ...lagsOf(now).map(({ lagMs }) => lagMs))
}

/** On a terminal a page that is drawn again; elsewhere one table, or one line of JSON, after the other. */
async function watch(context: StatusContext, read: () => Promise<Status>, where: string): Promise<ExitCode> {
  const { io, out, options, signal } = context
  const history = createHistory()
  const screen = out.width !== undefined && !out.json ? openScreen(io.stdout) : undefined
  let now: Status | undefined
  // Not only when the statement that runs is answered: the command may end before.
  const close = (): void => screen?.close()
  signal.addEventListener('abort', close)
  try {
    for (let turn = 1; !signal.aborted; turn++) {
      now = await read()
      history.add(now)
      if (screen) {
        const words = `${showTime(new Date())}  ${where}  every ${options.interval / 1_000} s, Ctrl-C ends it`
        const head = cut(out.rendered(words), out.width ?? 80)
        const tables = statusLines(now, { maxLagMs: options.maxLag, history })
        screen.draw([head, ...tables.flatMap(({ columns, rows }) => ['', ...out.rows(columns, rows)])])
      } else print(context, now, history)
      if (turn === options.times) break
      await waitFor(options.interval, signal)
    }
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
  if (now === undefined || signal.aborted) return EXIT.interrupted
  if (screen) print(context, now)
  return judge(context, now)
}

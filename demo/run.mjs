/**
 * `npm run demo`: orders are placed, an unreliable link carries their events to two services, and the services' worker
 * processes are killed again and again. At the end an audit counts what was done twice and what was lost: by a naive
 * consumer, and by oncebox, on the same traffic. README.md says which file does what.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { audit, isClean } from './audit.mjs'
import { Crew } from './crew.mjs'
import { openDashboard } from './dashboard.mjs'
import { CannotConnect, createTables, openDatabase } from './database.mjs'
import { auditTable, Progress } from './display.mjs'
import { Link, SERVICES, SIDES } from './link.mjs'
import { readOptions } from './options.mjs'
import { endAll, start } from './processes.mjs'
import { serviceBox } from './services.mjs'
import { SimulatedCrew } from './simulated.mjs'

const LOOK_EVERY_MS = 250
/** So long without any progress, and something is wrong. */
const PATIENCE_MS = 60_000

const options = readOptions()
/** The dashboard, if there is one. */
let shown
const progress = new Progress({ quiet: options.json })
/** What has to be closed, the last first. */
const atEnd = []
let cleaning

/** Ctrl-C ends everything in good order; a second one does not wait for that. */
let interrupted = false
/** What it exits with once it has its result, and only a dashboard is left to look at. */
let result
for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 })) {
  process.on(signal, () => {
    if (interrupted) process.exit(code)
    interrupted = true
    progress.say(result === undefined ? 'interrupted; cleaning up' : 'cleaning up')
    void cleanUp().finally(() => process.exit(result ?? code))
  })
}

try {
  const report = await run()
  progress.clear()
  if (options.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
  else process.stdout.write(`\n${auditTable(report)}\n\n${verdict(report)}\n`)
  process.exitCode = report.ok ? 0 : 1
  if (shown) await stay(shown, process.exitCode)
} catch (error) {
  // What is being taken down complains.
  if (!interrupted) {
    progress.clear()
    process.stderr.write(`the demo failed: ${error instanceof CannotConnect ? error.message : error.stack}\n`)
    process.exitCode = error instanceof CannotConnect ? 4 : 1
  }
} finally {
  if (!interrupted) await cleanUp()
}

/** Until Ctrl-C. */
async function stay({ url, forge }, exitCode) {
  result = exitCode
  await forge()
  progress.say(`\nwhat the kills have left behind is at ${url}; Ctrl-C ends it`)
  await new Promise(() => setInterval(() => {}, 60_000))
}

function cleanUp() {
  cleaning ??= (async () => {
    for (const close of atEnd.reverse()) {
      try {
        await close()
      } catch (error) {
        progress.say(`while cleaning up: ${error.message}`)
      }
    }
  })()
  return cleaning
}

async function run() {
  const started = performance.now()
  const { seed, perSecond } = options
  const directory = mkdtempSync(path.join(tmpdir(), 'oncebox-demo-'))
  const removeDirectory = () => rmSync(directory, { recursive: true, force: true })
  process.once('exit', removeDirectory)
  atEnd.push(removeDirectory)

  const database = await openDatabase(options.database, (line) => progress.say(line))
  atEnd.push(database.close)
  const { db, url, schema } = database
  const orders = options.orders ?? (url ? 1000 : 300)
  await createTables(database)
  const gateway = start('./gateway.mjs', [], { ONCEBOX_DEMO_SEED: seed, ONCEBOX_DEMO_DIR: directory })
  atEnd.push(endAll)
  const settings = { url, schema, seed, orders, perSecond, gateway: (await gateway.ready).url }
  const link = new Link(seed)
  const crew = new (url ? Crew : SimulatedCrew)({ link, seed, settings, db })
  atEnd.push(() => crew.close())
  progress.say(`${orders} orders on ${database.name}, seed ${seed}`)
  if (!url) progress.say('one process only: kills are simulated, by crashing the flow at named points')
  await crew.open()
  if (options.dashboard) {
    shown = await openDashboard(database, options.port)
    atEnd.push(shown.close)
    progress.say(`dashboard: ${shown.url}`)
  }

  const boxes = SERVICES.map((service) => serviceBox(service, { db, schema }))
  const look = async () => ({
    naive: await audit(db, directory, 'naive'),
    oncebox: await audit(db, directory, 'oncebox'),
  })
  await Promise.race([untilQuiet({ orders, link, crew, boxes, look }), crew.broken])
  const sides = await look()

  for (const side of SIDES) {
    const deliveries = link.deliveries(side)
    sides[side] = { ...sides[side], deliveries, duplicates: deliveries - SERVICES.length * link.events }
  }
  return {
    ok: isClean(sides.oncebox) && sides.oncebox.orders === orders,
    seed,
    database: database.name,
    seconds: Math.round((performance.now() - started) / 100) / 10,
    orders: sides.oncebox.orders,
    kills: crew.kills,
    processesKilled: crew.killed,
    simulated: !url,
    ...sides,
  }
}

/** Kills at regular intervals while there are orders, then waits until nothing is under way any more. */
async function untilQuiet({ orders, link, crew, boxes, look }) {
  const killEvery = Math.max(crew.pause, Math.ceil(orders / 15))
  let killAt = killEvery
  let last = { seen: '', at: performance.now() }
  for (;;) {
    await sleep(LOOK_EVERY_MS)
    if (link.events >= killAt && link.events < orders) {
      crew.kill()
      killAt += killEvery
    }
    const { naive, oncebox } = await look()
    const state = {
      orders: oncebox.orders,
      of: orders,
      deliveries: link.deliveries('oncebox'),
      handled: SERVICES.length * oncebox.orders - oncebox.lostReservations - oncebox.lostPayments,
      ofHandled: SERVICES.length * orders,
      kills: crew.kills,
      naive,
      oncebox,
    }
    progress.show(state)
    if (link.events >= orders && link.idle && (await Promise.all(boxes.map(isDone))).every(Boolean)) return

    const seen = JSON.stringify(state)
    if (seen !== last.seen) last = { seen, at: performance.now() }
    if (performance.now() - last.at > PATIENCE_MS) {
      progress.say(`nothing has happened for ${PATIENCE_MS / 1000} s; the audit counts what is missing as lost`)
      return
    }
  }
}

async function isDone(box) {
  const { consumers } = await box.admin.status()
  return Object.values(consumers).every(({ pending, processing }) => pending + processing === 0)
}

function verdict({ ok, oncebox, kills, seconds, seed }) {
  if (!ok) return `oncebox doubled or lost something: please report it, with the seed ${seed}`
  return (
    `${oncebox.orders} orders, ${oncebox.deliveries} deliveries, ${kills} ${kills === 1 ? 'kill' : 'kills'}: ` +
    `with oncebox every order was reserved once and charged once. (${seconds} s, seed ${seed})`
  )
}

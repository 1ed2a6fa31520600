/**
 * Runs the conformance suite of drivers in a process of its own, for a client that needs another Node.js than the tests run
 * on: `conformance.mjs <subject> <directory of its packages> <url>`. Prints the failures, and how many cases there were.
 */
import pg from 'pg'
import { driverConformance } from 'oncebox/testing'

const [name, from, url] = process.argv.slice(2)
const { open, capabilities } = await import(`../subjects/${name}.mjs`)
const { hostname: host, port, username: user, pathname } = new URL(url)
const side = new pg.Client(url)
await side.connect()
const unhandled = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))

const cases = driverConformance({
  async open() {
    const opened = await open({ host, port: Number(port), user, database: pathname.slice(1), max: 4, name }, from)
    return { ...opened, outside: async (text) => (await side.query(text)).rows }
  },
  capabilities: { ...capabilities, faults: false },
})
const failures = []
for (const { name: promise, run } of cases) {
  await run().catch((error) => failures.push(`${promise}: ${error?.message}`))
}
console.log(JSON.stringify({ cases: cases.length, failures, unhandled, node: process.versions.node }))
await side.end()
process.exit(0)

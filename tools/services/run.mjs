/**
 * `npm run services [-- names… --json]`: starts private services, all or those that are named, and prints how to reach
 * them, as lines for a shell. Ends them on Ctrl-C.
 *
 * A service is a file of this folder that exports `start`.
 */
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** Where a service comes from, in words. */
const KINDS = {
  given: 'named by the environment',
  binary: 'the one installed here',
  installed: 'installed by this command',
  npm: "npm's",
  mock: 'a mock that speaks its protocol, not the real thing',
}

const HERE = path.dirname(fileURLToPath(import.meta.url))
const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean' } } })

const stopped = new Promise((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, resolve)
})

const available = await findServices()
const names = positionals.length > 0 ? positionals : [...available.keys()]
for (const name of names) {
  if (available.has(name)) continue
  console.error(`there is no service ${name}; there are: ${[...available.keys()].join(', ')}`)
  process.exit(2)
}

const services = []
const failures = []
const starting = names.map(async (name) => {
  try {
    services.push(await available.get(name)())
  } catch (error) {
    failures.push(`${name}: ${error.message}`)
  }
})
const ended = await Promise.race([stopped, Promise.all(starting).then(() => undefined)])
for (const failure of failures) console.error(failure)
if (ended === undefined && failures.length === 0) {
  report(services.sort((a, b) => a.name.localeCompare(b.name)))
  // A listener alone keeps no process alive.
  const alive = setInterval(() => {}, 60_000)
  await stopped
  clearInterval(alive)
}
await Promise.all(services.map((service) => service.stop()))
// Whatever is still starting is ended by what each service does on exit.
process.exit(failures.length > 0 ? 1 : 0)

async function findServices() {
  const found = new Map()
  for (const file of (await readdir(HERE)).sort()) {
    if (!/^[\w-]+\.mjs$/.test(file) || file === 'run.mjs') continue
    const module = await import(new URL(file, import.meta.url))
    if (typeof module.start === 'function') found.set(module.name ?? path.basename(file, '.mjs'), module.start)
  }
  return found
}

function report(running) {
  if (values.json) {
    const fields = ({ name, kind, version, url, pid, variable }) => ({ name, kind, version, url, pid, variable })
    console.log(JSON.stringify(running.map(fields)))
    return
  }
  for (const service of running) {
    console.log(`# ${service.name} ${service.version}, ${KINDS[service.kind]}`)
    console.log(`export ${service.variable}='${service.url}'`)
  }
  console.log('# Ctrl-C ends them')
}

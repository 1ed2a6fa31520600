/** The same backlog for one process, for four, and for sixteen. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { orders } from '../messages.mjs'
import { compare, load, openBox } from './measure.mjs'

/** The first messages of a process take twice as long. */
const WARM = 3_000
const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))

export async function measureProcesses(bench) {
  const { server, admin, messages, repeats, say } = bench
  const one = await openBox(bench, 'growth_processes')
  const rates = new Map([1, 4, 16].map((count) => [count, []]))
  for (let at = 0; at < repeats; at++) {
    for (const [count, samples] of rates) {
      await admin.query(`truncate ${one.box.tables.join(', ')}, bench.effect`)
      const workers = await Promise.all(Array.from({ length: count }, () => startWorker(server.url, one.schema)))
      // The first ones warm up, each process for itself.
      await appear(admin, one, count * WARM)
      samples.push(Math.round((messages * 1_000) / (await appear(admin, one, messages))))
      say(`${count} processes: ${samples.at(-1)}/s`)
      await Promise.all(workers.map(stop))
    }
  }
  await one.box.close()
  return [4, 16].map((count) =>
    compare('processes', `1 and ${count}, 4 connections each`, { small: rates.get(1), large: rates.get(count) }),
  )
}

/** So many messages appear at once, and all of them are handled: in so many ms. */
async function appear(admin, one, count) {
  await load(admin, one.schema, count)
  const started = performance.now()
  // Its workers are told of this one.
  await one.box.receive(orders(1))
  while ((await one.left()) > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  return performance.now() - started
}

/** Connected and started. */
async function startWorker(url, schema) {
  const child = spawn(process.execPath, [WORKER, url, schema], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(createInterface({ input: child.stdout }), 'line')
  return child
}

async function stop(child) {
  const ended = once(child, 'exit')
  child.stdin.end()
  await ended
}

import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { findOrInstall } from '../../tools/services/packages.mjs'
import { freePorts } from '../../tools/services/ports.mjs'
import { accepts, givenService, startProcess, startService } from '../../tools/services/process.mjs'
import { waitUntil } from '../support/wait.js'

const RUN = fileURLToPath(new URL('../../tools/services/run.mjs', import.meta.url))
const TIMEOUT_MS = 300_000

const started: ChildProcess[] = []
afterAll(() => {
  for (const child of started) child.kill('SIGKILL')
})

describe('npm run services', { timeout: TIMEOUT_MS }, () => {
  test('starts what is named, says how to reach it, and ends it on SIGTERM', async () => {
    const { child, services } = await runServices('postgres', 'rabbitmq')
    expect(services.map(({ name, variable }) => [name, variable])).toEqual([
      ['postgres', 'DATABASE_URL'],
      ['rabbitmq', 'AMQP_URL'],
    ])
    for (const { url, kind, version } of services) {
      expect(await accepts(portOf(url))).toBe(true)
      expect(['given', 'binary', 'installed']).toContain(kind)
      expect(version).toMatch(/^\d+\./)
    }
    const exited = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
    for (const { url } of services) expect(await accepts(portOf(url))).toBe(false)
  })

  test('leaves no process behind when it is killed', async () => {
    const { child, services } = await runServices('rabbitmq')
    child.kill('SIGKILL')
    await waitUntil(async () => !(await accepts(portOf(services[0]!.url))))
  })

  test('does not know every name', async () => {
    const child = spawn(process.execPath, [RUN, 'zeppelin'], { stdio: 'ignore' })
    started.push(child)
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(2)
  })
})

describe('a service', () => {
  const listener = (port: number) =>
    startService({
      name: 'listener',
      variable: 'LISTENER_URL',
      kind: 'binary',
      version: '1',
      url: `tcp://127.0.0.1:${port}`,
      launch: (directory) =>
        startProcess({
          command: process.execPath,
          args: ['-e', `require('node:net').createServer().listen(${port}, '127.0.0.1')`],
          directory,
          ready: () => accepts(port),
        }),
    })

  test('can be killed and started again, and is gone with its directory when it is stopped', async () => {
    const [port = 0] = await freePorts(1)
    await using service = await listener(port)
    const { pid } = service
    await service.kill()
    expect(await accepts(port)).toBe(false)
    await service.resume()
    expect(service.pid).not.toBe(pid)
    expect(await accepts(port)).toBe(true)
    await service.restart()
    expect(await accepts(port)).toBe(true)

    await service.stop()
    expect(await accepts(port)).toBe(false)
    expect(existsSync(service.directory)).toBe(false)
  })

  test('that ends while it starts says so, with its last words', async () => {
    const starting = startService({
      name: 'broken',
      variable: 'BROKEN_URL',
      kind: 'binary',
      version: '1',
      url: '',
      launch: (directory) =>
        startProcess({ command: process.execPath, args: ['-e', 'throw 4711'], directory, ready: () => false }),
    })
    await expect(starting).rejects.toThrow('4711')
  })

  test('that was given is not ours to kill', async () => {
    const service = givenService({ name: 'x', variable: 'X_URL', version: '1', url: 'x://' })
    for (const fault of [service.kill, service.resume, service.restart]) await expect(fault()).rejects.toThrow('X_URL')
    await service.stop()
  })

  test(
    'that cannot be had says what to do',
    async () => {
      const wanted = findOrInstall({
        package: 'oncebox-no-such-package',
        variable: 'X_URL',
        find: () => Promise.resolve(undefined),
      })
      await expect(wanted).rejects.toThrow(
        /apt-get install --no-install-recommends oncebox-no-such-package[^]*compose[^]*X_URL/,
      )
    },
    TIMEOUT_MS,
  )
})

interface Running {
  name: string
  kind: string
  version: string
  url: string
  variable: string
}

async function runServices(...names: string[]): Promise<{ child: ChildProcess; services: Running[] }> {
  const { DATABASE_URL: _1, AMQP_URL: _2, ...env } = process.env
  const child = spawn(process.execPath, [RUN, '--json', ...names], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(child)
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve)
    child.once('exit', (code) => reject(new Error(`it ended with ${code}`)))
  })
  return { child, services: JSON.parse(line) as Running[] }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}

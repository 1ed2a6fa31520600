/**
 * A private Prometheus that scrapes what it is told to, on the loopback address alone, and promtool. It is no service of its
 * own, so it exports no `start`. Types are in prometheus.d.mts.
 */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { findOrInstall, findProgram } from './packages.mjs'
import { freePort } from './ports.mjs'
import { startProcess, startService } from './process.mjs'

const run = promisify(execFile)

function find(program) {
  return findOrInstall({ package: 'prometheus', find: () => findProgram(program) })
}

/** Runs promtool. Answers what it printed; rejects with that if it finds fault. */
export async function promtool(args, options = {}) {
  const { path: program } = await find('promtool')
  const running = run(program, args, { cwd: options.cwd })
  if (options.input !== undefined) running.child.stdin.end(options.input)
  try {
    const { stdout, stderr } = await running
    return stdout + stderr
  } catch (error) {
    throw new Error(`promtool ${args.join(' ')}: ${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error })
  }
}

/** `targets` are `host:port`; each is asked for /metrics every second. */
export async function startPrometheus(targets) {
  const { path: program, kind } = await find('prometheus')
  const { stdout } = await run(program, ['--version'])
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const configuration = {
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: [{ job_name: 'boxes', static_configs: [{ targets }] }],
  }
  return startService({
    name: 'prometheus',
    variable: 'PROMETHEUS_URL',
    kind,
    version: /version ([\d.]+)/.exec(stdout)?.[1] ?? `of ${program}`,
    url,
    async prepare(directory) {
      await mkdir(path.join(directory, 'data'))
      // JSON is YAML too.
      await writeFile(path.join(directory, 'prometheus.yml'), JSON.stringify(configuration))
    },
    launch: (directory) =>
      startProcess({
        command: program,
        args: [
          '--config.file=prometheus.yml',
          '--storage.tsdb.path=data',
          `--web.listen-address=127.0.0.1:${port}`,
          '--log.level=error',
        ],
        directory,
        ready: () =>
          fetch(`${url}/-/ready`).then(
            ({ ok }) => ok,
            () => false,
          ),
      }),
  })
}

/** A private RabbitMQ: one node with its own port mapper, on the loopback address alone. Types are in rabbitmq.d.mts. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { findServer } from './debian.mjs'
import { findProgram } from './packages.mjs'
import { freePorts, freePortsApart } from './ports.mjs'
import { accepts, givenService, startProcess, startService } from './process.mjs'

const run = promisify(execFile)

export const name = 'rabbitmq'
export const variable = 'AMQP_URL'

export async function start() {
  const given = process.env[variable]
  if (given) return givenService({ name, variable, url: given, version: 'unknown' })

  // The one in PATH changes the user by `su`, and with it the environment.
  const find = () => findProgram('rabbitmq-server', ['/usr/lib/rabbitmq/bin'])
  const inner = '/usr/lib/rabbitmq/bin/rabbitmq-server'
  const wanted = { package: 'rabbitmq-server', program: inner, variable, find }
  const { path: program, kind, version } = await findServer(wanted)
  // By convention the management listens 10 000 above: it alone can say what is delivered but not acknowledged.
  const [port, managementPort] = await freePortsApart(10_000)
  const [mapperPort, clusterPort] = await freePorts(2)
  /** Erlang would start a port mapper by itself, which would outlive us. */
  let mapper
  const service = await startService({
    name,
    variable,
    kind,
    version: version ?? (await installedVersion(program)),
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    async prepare(directory) {
      const config = [
        `listeners.tcp.1 = 127.0.0.1:${port}`,
        'loopback_users = none',
        'management.tcp.ip = 127.0.0.1',
        `management.tcp.port = ${managementPort}`,
        // No history, only the totals of now.
        'management.disable_stats = true',
        'management_agent.disable_metrics_collector = true',
        'collect_statistics_interval = 250',
        // As from version 4.
        'max_message_size = 16777216',
        // A full disk of the machine must not look like a broker that does not confirm.
        'disk_free_limit.absolute = 50MB',
        'log.console = true',
        'log.file = false',
      ]
      await writeFile(path.join(directory, 'rabbitmq.conf'), config.join('\n'))
      await writeFile(path.join(directory, 'plugins'), '[rabbitmq_management].')
      await mkdir(path.join(directory, 'mapper'))
      mapper = await startProcess({
        command: (await findProgram('epmd')) ?? 'epmd',
        args: ['-port', String(mapperPort), '-address', '127.0.0.1'],
        directory: path.join(directory, 'mapper'),
        ready: () => accepts(mapperPort),
      })
    },
    launch: (directory) =>
      startProcess({
        command: program,
        env: environment(directory, { port, mapperPort, clusterPort }),
        directory,
        ready: () => greets(directory, port),
      }),
    dispose: () => mapper?.end('SIGKILL'),
  })
  return Object.assign(service, {
    async control(...args) {
      const env = { ...process.env, ...environment(service.directory, { port, mapperPort, clusterPort }) }
      await run(path.join(path.dirname(program), 'rabbitmqctl'), args, { env })
    },
  })
}

function environment(directory, { port, mapperPort, clusterPort }) {
  return {
    HOME: directory,
    // Then the script becomes the node, instead of waiting for it.
    RUNNING_UNDER_SYSTEMD: '1',
    RABBITMQ_NODENAME: `oncebox${port}@localhost`,
    RABBITMQ_CONFIG_FILE: path.join(directory, 'rabbitmq'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_MNESIA_BASE: path.join(directory, 'mnesia'),
    RABBITMQ_LOG_BASE: path.join(directory, 'logs'),
    RABBITMQ_ENABLED_PLUGINS_FILE: path.join(directory, 'plugins'),
    RABBITMQ_PID_FILE: path.join(directory, 'pid'),
    RABBITMQ_DIST_PORT: String(clusterPort),
    ERL_EPMD_PORT: String(mapperPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: [
      '-kernel inet_dist_use_interface {127,0,0,1}',
      // Quorum queues update their totals at this rate.
      '-rabbit quorum_tick_interval 250',
      // A node of a test needs neither all processors spinning nor a dump of its memory.
      '+sbwt none',
    ].join(' '),
    ERL_CRASH_DUMP_SECONDS: '0',
  }
}

/** It listens before it is ready to serve; the log says when that is. */
async function greets(directory, port) {
  if (!(await accepts(port))) return false
  const log = await readFile(path.join(directory, 'log'), 'utf8').catch(() => '')
  return log.lastIndexOf('startup complete') > log.lastIndexOf('Starting RabbitMQ')
}

async function installedVersion(program) {
  const { stdout } = await run('dpkg-query', ['-W', '-f', '${Version}', 'rabbitmq-server']).catch(() => ({
    stdout: '',
  }))
  return stdout.replace(/-.*$/, '') || `of ${program}`
}

/**
 * kafka-mock: the mock cluster of librdkafka, which speaks the protocol over TCP and keeps everything in memory. It has
 * no idempotent producer and no admin requests, forgets all when it is restarted, and makes topics when they are asked
 * for. In a process of its own, so that it can be killed.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { findOrInstall } from '../packages.mjs'
import { startProcess, startService } from '../process.mjs'
import { answers } from './broker.mjs'

const PROCESS = fileURLToPath(new URL('./mock-process.mjs', import.meta.url))
const LIBRARIES = ['x86_64', 'aarch64'].map((cpu) => `/usr/lib/${cpu}-linux-gnu/librdkafka.so.1`)

export async function startMock({ variable }) {
  const find = async () => LIBRARIES.find((file) => existsSync(file))
  const { path: library } = await findOrInstall({ package: 'librdkafka1', variable, find })
  let url
  const service = await startService({
    name: 'kafka-mock',
    variable,
    kind: 'mock',
    version: 'librdkafka1',
    url: '',
    async launch(directory) {
      const file = path.join(directory, 'address')
      return startProcess({
        command: process.execPath,
        args: [PROCESS, library, file],
        directory,
        async ready() {
          url = await readFile(file, 'utf8').catch(() => undefined)
          return url !== undefined && answers(url)
        },
      })
    },
  })
  const refuse = async () => {
    throw new Error('kafka-mock keeps its data in memory and chooses its port: it cannot be started again')
  }
  return { ...service, url, resume: refuse, restart: refuse }
}

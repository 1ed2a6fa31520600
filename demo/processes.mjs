/** Starts this demo's processes and ends them by their id: all of them, however the demo ends. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { childPort } from './ends.mjs'

const running = new Set()
process.once('exit', endAll)

/** Starts `node file …args`. `ready` resolves with its first message, `ended` when it is gone. */
export function start(file, args, env) {
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], {
    env: { ...process.env, ...env },
    // In a process group of its own: Ctrl-C is for us, and we end them.
    detached: true,
    // Data is for stdout; what a worker has to say is not.
    stdio: ['ignore', 2, 2, 'ipc'],
  })
  running.add(child)
  const port = childPort(child)
  // Writing to a process that has just been killed is what this demo does.
  child.on('error', () => {})
  const ended = new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child)
      resolve({ code, signal })
    })
  })
  const ready = new Promise((resolve, reject) => {
    port.listen((message) => {
      if (message.ready) resolve(message)
    })
    ended.then(() => reject(new Error(`${file} ended before it was ready`)))
  })
  // Many are killed before they are.
  ready.catch(() => {})
  return { port, ready, ended, kill: () => child.kill('SIGKILL') }
}

export function endAll() {
  for (const child of running) child.kill('SIGKILL')
}

/** The child's end of processes.ts. */
import { writeSync } from 'node:fs'

const heard = []
const waiting = []

process.on('message', (message) => {
  const index = waiting.findIndex(({ name }) => name === message.command)
  if (index < 0) heard.push(message)
  else waiting.splice(index, 1)[0].resolve(message)
})
// A child that waits for commands has nobody to get them from any more.
process.on('disconnect', () => process.exit(1))

/** Reports an event. It has left the process when this returns, so that a kill in the next line cannot lose it. */
export function emit(event, fields = {}) {
  let line = Buffer.from(`${JSON.stringify({ event, ...fields })}\n`)
  while (line.length > 0) {
    try {
      line = line.subarray(writeSync(1, line))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

/** The next command of that name. */
export function command(name) {
  const index = heard.findIndex((message) => message.command === name)
  if (index >= 0) return Promise.resolve(heard.splice(index, 1)[0])
  return new Promise((resolve) => waiting.push({ name, resolve }))
}

/** How a process is known to people: its host, and its id there. */
import { hostname } from 'node:os'

export function processName(): string {
  return `${hostname()}:${process.pid}`
}

/** The id of an event that its sender has given none. */
import { randomUUID } from 'node:crypto'

/**
 * A UUID of version 7: the time, and then at random. Whoever remembers ids keeps them in order: new ones go to the end of that, where a
 * random one is anywhere, and each costs a page of its own.
 */
export function eventId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  // What follows the time and the version is the same in version 4.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

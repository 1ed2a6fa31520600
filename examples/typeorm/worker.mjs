/** A worker that never gets to the end of its first message. */
import { openInbox } from './inbox.mjs'

const { box } = await openInbox(process.env['INBOX_URL'] ?? '', (order) => {
  process.send?.({ order })
  return new Promise(() => {})
})
await box.start()

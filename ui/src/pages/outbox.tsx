/** Outbox. */
import { PageHead } from '../components/page-head.js'

export function OutboxPage() {
  return <PageHead title="Outbox" />
}

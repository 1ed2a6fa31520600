/** Audit. */
import { PageHead } from '../components/page-head.js'

export function AuditPage() {
  return <PageHead title="Audit" />
}

/** Quarantine. */
import { PageHead } from '../components/page-head.js'

export function QuarantinePage() {
  return <PageHead title="Quarantine" />
}

/** Failures. */
import { PageHead } from '../components/page-head.js'

export function FailuresPage() {
  return <PageHead title="Failures" />
}

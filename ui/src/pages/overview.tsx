/** Overview: is anything wrong, where, since when, and what to do. */
import { PageHead } from '../components/page-head.js'
import { overview } from '../live.js'

export function OverviewPage() {
  const at = overview.value
  return <PageHead title={at ? `${at.findings.length} things need you` : 'Reading the box'} />
}

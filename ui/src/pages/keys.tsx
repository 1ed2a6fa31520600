/** Keys. */
import { PageHead } from '../components/page-head.js'

export function KeysPage() {
  return <PageHead title="Keys" />
}

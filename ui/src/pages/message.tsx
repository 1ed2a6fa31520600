/** Message. */
import { PageHead } from '../components/page-head.js'

export function MessagePage() {
  return <PageHead title="Message" />
}

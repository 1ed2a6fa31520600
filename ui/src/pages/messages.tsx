/** Messages. */
import { PageHead } from '../components/page-head.js'

export function MessagesPage() {
  return <PageHead title="Messages" />
}

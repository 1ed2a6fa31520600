/** Settings. */
import { PageHead } from '../components/page-head.js'

export function SettingsPage() {
  return <PageHead title="Settings" />
}

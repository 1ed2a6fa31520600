/** Doctor. */
import { PageHead } from '../components/page-head.js'

export function DoctorPage() {
  return <PageHead title="Doctor" />
}

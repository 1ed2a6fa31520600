/** The diagnosis: what the doctor has found, one examination for all who look. It asks the server a dozen questions. */
import { doctor } from '../admin/doctor/index.js'
import type { Runtime } from '../runtime.js'
import type { Doctor } from './answers/index.js'
import type { Inside } from './options.js'
import { sharedReading } from './shared-reading.js'

const KEPT_MS = 10_000

/** Not older than ten seconds. Whoever asks while the doctor looks gets what it finds. */
export type Diagnosis = () => Promise<Doctor>

export function createDiagnosis({ stage }: Inside, reads: Runtime): Diagnosis {
  const examine = async (): Promise<Doctor> => {
    const at = new Date().toISOString()
    return { at, findings: await doctor(reads, stage.consumers()) }
  }
  return sharedReading(examine, () => KEPT_MS)
}

/** The diagnosis: what the doctor has found, one examination for all who look. It asks the server a dozen questions. */
import { examine, worstFirst, type Finding } from '../admin/doctor/index.js'
import { sleep } from '../backoff.js'
import type { Runtime } from '../runtime.js'
import type { Doctor } from './answers/index.js'
import type { Inside } from './options.js'
import { sharedReading } from './shared-reading.js'

const KEPT_MS = 10_000

/**
 * Not older than ten seconds. A request that comes while the doctor looks gets what it finds. With a patience, what is known then: the
 * examination before, or as far as the first one has come.
 */
export type Diagnosis = (patienceMs?: number) => Promise<Doctor>

export function createDiagnosis({ stage }: Inside, reads: Runtime): Diagnosis {
  let before: Doctor | undefined
  let soFar: Doctor | undefined
  const shared = sharedReading(
    async (): Promise<Doctor> => {
      const own = { at: new Date().toISOString(), findings: [] as Finding[] }
      soFar = own
      for await (const found of examine(reads, stage.consumers())) own.findings.push(...found)
      return (before = { ...own, findings: worstFirst(own.findings) })
    },
    () => KEPT_MS,
  )
  return async (patienceMs) => {
    const reading = shared()
    if (patienceMs === undefined) return reading
    const known = await Promise.race([reading, sleep(patienceMs).then(() => undefined)])
    if (known) return known
    const { at, findings } = before ?? soFar!
    return { at, findings: worstFirst(findings), looking: true }
  }
}

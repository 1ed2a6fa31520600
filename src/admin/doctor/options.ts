/** What the doctor can be told: from when on something is a finding. */
import { DAY_MS } from '../../figures.js'
import { integer, resolve, type Resolved } from '../../options.js'

export interface DoctorOptions {
  /** So long something may be due without anybody at it. Default: a minute. */
  waitingMs?: number | undefined
  /** So far a consumer or a sink that is at work may be behind. Default: ten minutes. */
  lagMs?: number | undefined
  /** So long what waits for a person may wait before it is more than a note. Default: a day. */
  deadMs?: number | undefined
  /** So long a transaction may be open. Default: ten minutes. */
  transactionMs?: number | undefined
  /** So far the clocks of this process and of the database may be apart. Default: five seconds. */
  skewMs?: number | undefined
  /**
   * So long each question to the database may take; what takes longer is reported as a check that failed. Default: five
   * seconds.
   */
  timeoutMs?: number | undefined
}

const OPTIONS = {
  waitingMs: integer({ least: 0, fallback: 60_000 }),
  lagMs: integer({ least: 0, fallback: 600_000 }),
  deadMs: integer({ least: 0, fallback: DAY_MS }),
  transactionMs: integer({ least: 0, fallback: 600_000 }),
  skewMs: integer({ least: 0, fallback: 5_000 }),
  timeoutMs: integer({ least: 1, most: 600_000, fallback: 5_000 }),
}

export type DoctorLimits = Resolved<typeof OPTIONS>

export function resolveLimits(options: DoctorOptions): DoctorLimits {
  return resolve('doctor', options, OPTIONS)
}

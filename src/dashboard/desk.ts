/** The desk: what the routes work with. A part for each box, and what all of them share. */
import { tellSafely } from '../http/report.js'
import type { Runtime } from '../runtime.js'
import type { Access } from './access.js'
import { createJobs, type Jobs } from './bulk/jobs.js'
import { createDiagnosis, type Diagnosis } from './diagnosis.js'
import { maySeeBodies, type Viewer } from './expose.js'
import { fingerprintsFor, secretOf, type Fingerprints } from './fingerprints.js'
import { createHub, type Hub } from './hub.js'
import { boundReads, createBuckets, createGate, type Buckets } from './limits.js'
import type { Inside, Settings } from './options.js'
import { notFound } from './problem.js'
import { createSigner, type Signer } from './sign.js'

export interface Part extends Inside {
  /** For reading: bounded. */
  readonly reads: Runtime
  /** The same with a share of its own. */
  readsOf(reader: string): Runtime
  readonly hub: Hub
  readonly jobs: Jobs
  readonly diagnosis: Diagnosis
  secret(): Promise<string>
}

export interface Desk {
  readonly settings: Settings
  readonly parts: ReadonlyMap<string, Part>
  readonly signer: Signer
  readonly buckets: Buckets
}

/** A request that was let in. */
export interface Call {
  readonly desk: Desk
  readonly request: Request
  readonly access: Access
  readonly viewer: Viewer
  /** Where the dashboard is mounted. */
  readonly base: string
}

/** One about a box. */
export interface BoxCall extends Call {
  readonly part: Part
  readonly viewer: BoxViewer
}

/** A person who looks at a box. */
export interface BoxViewer extends Viewer {
  readonly fingerprints: Fingerprints
}

/** Reads for all, such as the overview. */
const NOBODY = ''

export function createDesk(insides: readonly Inside[], settings: Settings): Desk {
  const parts = insides.map((inside): [string, Part] => {
    const { runtime } = inside.stage
    const gate = createGate()
    const readsOf = (reader: string): Runtime => ({ ...runtime, db: boundReads(runtime.db, gate, reader) })
    const reads = readsOf(NOBODY)
    const report = (error: unknown): void => tellSafely(settings.onError, error)
    const { readOnly, redact } = settings
    const secret = secretOf(runtime)
    const jobs = createJobs({ inside, reads, readOnly, redact, report, secret })
    const hub = createHub({ inside, reads, jobs, report })
    return [inside.name, { ...inside, reads, readsOf, jobs, hub, secret, diagnosis: createDiagnosis(inside, reads) }]
  })
  return { settings, parts: new Map(parts), signer: createSigner(settings.secret), buckets: createBuckets() }
}

export async function callOf(call: Call, name: string): Promise<BoxCall> {
  const { desk, access, viewer } = call
  const part = partFor(desk, access, name)
  // What `redact` takes out of errors, nobody gets to see.
  const maySeeWords = maySeeBodies(viewer) && viewer.redact === undefined
  return { ...call, part, viewer: { ...viewer, fingerprints: fingerprintsFor(await part.secret(), maySeeWords) } }
}

/** A box that somebody does not get to see is not there for them. They read it with a share of their own. */
function partFor({ parts }: Desk, { boxes, subject }: Access, name: string): Part {
  const part = boxes && !boxes.has(name) ? undefined : parts.get(name)
  if (!part) throw notFound('there is no such box here')
  return { ...part, reads: part.readsOf(subject) }
}

export function partsFor({ desk, access }: Call): Part[] {
  const { boxes } = access
  return [...desk.parts.keys()].filter((name) => !boxes || boxes.has(name)).map((name) => partFor(desk, access, name))
}

/** With `redact`, a row is shown only once it has been through it, and for that its body is needed. */
export function needsBodies({ viewer }: Call): boolean {
  return viewer.redact !== undefined
}

export { maySeeBodies }

/** Kafka and what it needs, from Maven's central repository, once for all runs of a user. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../packages.mjs'

const run = promisify(execFile)

/** The last line that runs on Java 11 as well; from 4.0 on the broker needs Java 17. */
export const VERSION = process.env.ONCEBOX_KAFKA_VERSION || '3.9.1'

const FETCH_TIMEOUT_MS = 240_000
/** A repository that could not be reached is not asked again by each file of tests. */
const GIVEN_UP_MS = 1_800_000

/** @returns {Promise<{ directory: string, problem?: undefined } | { directory?: undefined, problem: string }>} */
export async function findOrFetchJars() {
  if (!(await findProgram('java'))) return { problem: 'there is no java' }
  const cache = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'oncebox')
  const directory = path.join(cache, `kafka-${VERSION}`)
  const failed = `${directory}.failed`
  if (existsSync(directory)) return { directory }
  const mvn = await findProgram('mvn')
  if (!mvn) return { problem: 'there is no mvn' }
  if ((await ageOf(failed)) < GIVEN_UP_MS)
    return { problem: `Maven could not fetch Kafka a while ago; ${failed} says why` }
  try {
    await mkdir(cache, { recursive: true })
    await fetch(mvn, cache, directory)
    return { directory }
  } catch (error) {
    const problem = `Maven could not fetch Kafka: ${(error.stdout || error.message).trim().split('\n')[0]}`
    await writeFile(failed, `${problem}\n`).catch(() => {})
    return { problem }
  }
}

/** Only a complete directory gets its name, and one process at a time fetches. */
const FETCH = `
[ -e "$1" ] && exit 0
"$3" -B -q -f "$2/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$2/lib"
`

async function fetch(mvn, cache, directory) {
  const work = await mkdtemp(path.join(cache, 'fetching-'))
  try {
    await writeFile(path.join(work, 'pom.xml'), POM)
    const lock = path.join(cache, 'lock')
    const args = [lock, 'sh', '-ec', FETCH, 'fetch', directory, work, mvn]
    await run('flock', args, { timeout: FETCH_TIMEOUT_MS, killSignal: 'SIGKILL' })
    if (!existsSync(directory)) await rename(path.join(work, 'lib'), directory)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function ageOf(file) {
  return stat(file).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => Infinity,
  )
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>oncebox</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`

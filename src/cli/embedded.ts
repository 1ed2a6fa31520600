/** The embedded database that runs for a directory, if any. */
import { projectOf } from './dev/place.js'
import { runningUrl } from './dev/server.js'

/** Its URL, where `oncebox dev` runs. */
export async function embeddedUrl(cwd: string): Promise<string | undefined> {
  return runningUrl(projectOf(cwd))
}

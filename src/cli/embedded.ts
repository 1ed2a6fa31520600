/** The embedded database that runs for a directory, if any. */

/** Its URL, where one runs and can be reached. */
export async function embeddedUrl(_cwd: string): Promise<string | undefined> {
  return undefined
}

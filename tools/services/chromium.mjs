/** The browser that looks at pages: Debian's headless Chromium, or the one that ONCEBOX_CHROMIUM names. Types are in chromium.d.mts. */
import { findOrInstall, findProgram } from './packages.mjs'

const PROGRAM = 'chromium-headless-shell'

/** The program itself: what Debian has in /usr/bin is a script, and would not take the browser with it when it is ended. */
const DIRECTORY = '/usr/lib/chromium'

export async function findChromium() {
  const given = process.env.ONCEBOX_CHROMIUM
  if (given) return given
  const { path } = await findOrInstall({ package: PROGRAM, find: () => findProgram(PROGRAM, [DIRECTORY]) })
  return path
}

/** The viewer of what is shown to all alike: one who may see no body. */
import type { Viewer } from './expose.js'

export const EVERYBODY: Viewer = {
  access: { by: undefined, may: new Set(['read']), boxes: undefined, subject: '' },
  redact: undefined,
  report: () => undefined,
}

/** Where the built interface is: beside this module. CommonJS has a module of its own for it, see scripts/commonjs.mjs. */
import { fileURLToPath } from 'node:url'

export const UI: string = fileURLToPath(new URL('./ui', import.meta.url))

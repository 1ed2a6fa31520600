/**
 * A Nest app with two boxes: a shop that places orders, and a warehouse that reserves stock for them. The app is in src/, as
 * `nest new` would have it; Node does not run decorators as they stand, so typescript.mjs compiles them as they are loaded.
 */
import { register } from 'node:module'

register('./typescript.mjs', import.meta.url)
await import(new URL('./src/main.ts', import.meta.url).href)

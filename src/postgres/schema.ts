/** The option of whatever works on the tables of a box: the name of their schema. `bindTo` says what it may be. */
import { checked, orElse } from '../options.js'

export const SCHEMA = orElse(
  checked((_, given: string) => given),
  'oncebox',
)

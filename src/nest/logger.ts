/** The logger of a box in Nest that was given none: Nest's own, so that the box's lines go where the app's go. */
import { Logger as NestLogger } from '@nestjs/common'
import { lineOf } from '../console.js'
import type { Logger } from '../handler.js'
import type { BoxName } from './tokens.js'

export function createNestLogger(name: BoxName | undefined): Logger {
  const own = typeof name === 'function' ? name.name : name
  const nest = new NestLogger(own === undefined ? 'Oncebox' : `Oncebox ${own}`)
  return {
    debug: (about, text) => nest.debug(lineOf(about, text)),
    info: (about, text) => nest.log(lineOf(about, text)),
    warn: (about, text) => nest.warn(lineOf(about, text)),
    error: (about, text) => nest.error(lineOf(about, text)),
  }
}

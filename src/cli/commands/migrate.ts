/** `oncebox migrate`: the schema of the box. */
import { command } from '../command.js'
import { integer, object } from '../shape.js'

export const migrateUp = command({
  noun: 'migrate',
  verb: 'up',
  summary: 'Bring the schema up to date, under a lock.',
  details: ['Safe to run from many processes at once, and again: what is done already is not done twice.'],
  example: 'oncebox migrate up --url postgres://app@localhost:5432/orders',
  connects: true,
  output: object({ from: integer, to: integer }),
  async run({ out, connect }) {
    const { box, schema } = await connect({ schema: 'any' })
    const moved = await box.migrate()
    if (out.json) return out.document(moved)
    const { from, to } = moved
    if (from === to) out.line(`schema ${schema} is at version ${to} already`)
    else
      out.line(from === 0 ? `schema ${schema} created, at version ${to}` : `schema ${schema}: version ${from} → ${to}`)
  },
})

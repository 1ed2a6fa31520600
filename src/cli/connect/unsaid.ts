/** What is said where nobody has named a database: then a command, or a client, has taken one by itself. */
import { embeddedUrl } from '../embedded.js'
import { EXIT, Exit } from '../exit.js'
import type { Io } from '../io.js'
import { saysWhich } from './place.js'

/** Of a command that found the database of `oncebox dev`. */
export function embeddedNote(url: string | undefined): string {
  const { host } = new URL(url!)
  return `on the database of oncebox dev, ${host}: neither --url nor DATABASE_URL names another`
}

/** Of a box that could not connect: without DATABASE_URL its client went where it goes by default. */
export async function hintAtUrl(problem: Exit, io: Io): Promise<Exit> {
  if (problem.code !== EXIT.unconnected || saysWhich(io.env)) return problem
  const running = await embeddedUrl(io.cwd)
  const ours = running === undefined ? 'oncebox dev has a database of its own' : `that of oncebox dev is ${running}`
  const advice = `DATABASE_URL is not set, nor PGHOST and its like: set what your config reads; ${ours}`
  return new Exit(problem.code, problem.message, advice)
}

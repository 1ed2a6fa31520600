/** Reads the input of a route: from its path, its query or its body. What is not declared is refused. */
import { nearest } from '../nearest.js'
import { flowOf, type Intake } from '../http/body.js'
import { mountOf } from '../http/handler.js'
import { invalid } from '../options.js'
import type { Matched } from './match.js'
import { Problem } from './problem.js'

export async function readInput(
  request: Request,
  { route, parameters }: Matched,
  intake: Intake,
): Promise<Record<string, unknown>> {
  const from = route.method === 'GET' ? 'query' : 'body'
  // What a page is asked for stands in its query, which is the interface's to read.
  const isPage = route.kind === 'page'
  const given = isPage ? {} : from === 'query' ? readQueryString(request) : await readJson(request, intake)
  const names = Object.keys(route.input)
  for (const name of Object.keys(given)) {
    if (names.includes(name) && !Object.hasOwn(parameters, name)) continue
    const near = nearest(name, names)
    throw new Problem(
      'INPUT_INVALID',
      `there is no ${JSON.stringify(name)} here${near ? `; did you mean ${near}?` : ''}`,
      { field: name },
    )
  }
  const entries = names.map((name): [string, unknown] => {
    const isInPath = Object.hasOwn(parameters, name)
    const value = isInPath ? parameters[name] : Object.hasOwn(given, name) ? given[name] : undefined
    return [name, route.input[name]!.read(name, value, isInPath ? 'query' : from)]
  })
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function readQueryString(request: Request): Record<string, unknown> {
  const { searchParams } = new URL(request.url)
  const names = [...searchParams.keys()]
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw new Problem('INPUT_INVALID', `${twice} is there twice`, { field: twice })
  return Object.fromEntries(searchParams)
}

/** Forms of other sites can send texts and forms, and no JSON. */
export function checkType(request: Request): void {
  const type = request.headers.get('content-type') ?? ''
  if (/^application\/json\s*(;|$)/i.test(type)) return
  throw new Problem('NOT_JSON', 'send JSON, and say so: content-type: application/json')
}

async function readJson(request: Request, intake: Intake): Promise<Record<string, unknown>> {
  if (request.bodyUsed) return parsedBefore(request)
  const read = await intake.read(flowOf(request))
  if ('problem' in read) {
    if (read.problem === 'too-large') throw new Problem('TOO_LARGE', 'the body is too large')
    if (read.problem === 'crowded-out') throw new Problem('BUSY', 'too many large requests at once; try again')
    throw new Problem('INPUT_INVALID', 'the body broke off, or came too slowly')
  }
  const value = parse(read.bytes)
  if (isObject(value)) return value
  throw new Problem('INPUT_INVALID', NO_OBJECT)
}

const NO_OBJECT = 'the body must be a JSON object'

/** What a parser of the framework has left: Express in its request, Koa in the request of its context. */
function parsedBefore(request: Request): Record<string, unknown> {
  const own = mountOf(request).request as { readonly request?: Kept; readonly body?: unknown } | undefined
  const { body } = own?.request ?? own ?? {}
  if (isObject(body)) return body
  if (body !== undefined) throw new Problem('INPUT_INVALID', NO_OBJECT)
  const what = 'the body of a request to the dashboard had been read already, and nobody has left what was in it'
  const cause = invalid(`${what}; mount it before whatever parses bodies`)
  throw new Problem('INTERNAL', 'the dashboard got no body here; the log of the server says why', {}, { cause })
}

interface Kept {
  readonly body?: unknown
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown
  } catch {
    throw new Problem('INPUT_INVALID', 'the body is no JSON in UTF-8')
  }
}

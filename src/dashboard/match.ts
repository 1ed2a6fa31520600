/** Finds the route of a path. Literal parts win over parameters, and no two routes fit one path otherwise: a test sees to it. */
import { ROUTES, type Route, type RouteName } from './routes.js'

export interface Matched {
  readonly name: RouteName
  readonly route: Route
  readonly parameters: Readonly<Record<string, string>>
}

interface Compiled {
  readonly name: RouteName
  readonly route: Route
  readonly parts: readonly string[]
}

const COMPILED: readonly Compiled[] = Object.entries(ROUTES).map(([name, route]) => ({
  name: name as RouteName,
  route,
  parts: route.path.split('/').slice(1),
}))

/** The routes of a path below the base, whatever their methods. */
export function matchAll(path: string): Matched[] {
  const parts = path.split('/').slice(1)
  const found = COMPILED.flatMap((one): (Matched & { literals: number })[] => {
    const parameters = match(one, parts)
    return parameters ? [{ name: one.name, route: one.route, parameters, literals: literalsOf(one) }] : []
  })
  const most = Math.max(...found.map(({ literals }) => literals))
  return found.filter(({ literals }) => literals === most)
}

function literalsOf({ parts }: Compiled): number {
  return parts.filter((part) => !part.startsWith(':')).length
}

function match({ parts: wanted }: Compiled, parts: readonly string[]): Record<string, string> | undefined {
  if (parts.length !== wanted.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [at, part] of wanted.entries()) {
    const given = parts[at]!
    if (!part.startsWith(':')) {
      if (part !== given) return undefined
      continue
    }
    const decoded = decode(given)
    if (decoded === undefined || decoded === '') return undefined
    parameters[part.slice(1)] = decoded
  }
  return parameters
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Runs a Standard Schema over data that came from JSON. */
import { storableText, toFailure } from './failure.js'
import type { StandardSchemaV1 } from './standard-schema.js'

export type Validated = { readonly value: unknown } | { readonly problem: string; readonly fields?: readonly string[] }

/** Runs a schema. A type without one is not checked: its consumer may run in another process. */
export function validate(schema: StandardSchemaV1 | undefined, data: unknown): Validated | Promise<Validated> {
  if (schema === undefined) return { value: data }
  try {
    const result = schema['~standard'].validate(data)
    return result instanceof Promise ? result.then(readResult, schemaThrew) : readResult(result)
  } catch (error) {
    return schemaThrew(error)
  }
}

function readResult(result: StandardSchemaV1.Result<unknown>): Validated {
  if (result.issues === undefined) return { value: result.value }
  const shown = result.issues.slice(0, 10)
  const issues = shown.map((issue) => {
    const path = keysOf(issue).join('.')
    return path ? `${path}: ${issue.message}` : issue.message
  })
  return { problem: storableText(issues.join('; ').slice(0, 2_000)) || 'invalid', fields: fieldsOf(shown) }
}

function keysOf({ path = [] }: StandardSchemaV1.Issue): string[] {
  return path.map((part) => String(typeof part === 'object' ? part.key : part))
}

/** As names of fields are written. A key of a map may be anything, such as an address or a number of an account. */
const NAME = /^(?:[a-z_$][a-z_$-]{0,39}\d{0,2}|\d{1,6})$/i

/** Which fields are wrong, for logs: nothing of what is in them. */
function fieldsOf(issues: readonly StandardSchemaV1.Issue[]): string[] {
  const fields = issues.map((issue) => keysOf(issue).map((key) => (NAME.test(key) ? key : '‹key›')).join('.')) // prettier-ignore
  return [...new Set(fields.filter((field) => field !== ''))]
}

function schemaThrew(error: unknown): Validated {
  return { problem: storableText(`the schema threw: ${toFailure(error).message}`.slice(0, 2_000)) }
}

/** Runs a Standard Schema over data that came from JSON. */
import { storableText, toFailure } from './failure.js'
import type { StandardSchemaV1 } from './standard-schema.js'

export type Validated = { readonly value: unknown } | { readonly problem: string }

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
  const issues = result.issues.slice(0, 10).map((issue) => {
    const path = issue.path?.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
    return path ? `${path}: ${issue.message}` : issue.message
  })
  return { problem: storableText(issues.join('; ').slice(0, 2_000)) || 'invalid' }
}

function schemaThrew(error: unknown): Validated {
  return { problem: storableText(`the schema threw: ${toFailure(error).message}`.slice(0, 2_000)) }
}

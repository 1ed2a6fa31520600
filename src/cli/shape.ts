/** The shape of what `--json` prints, as JSON Schema: the page of the docs shows it, and the tests hold the output against it. */

export interface Shape {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly format?: string
  readonly enum?: readonly (string | number | boolean)[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Shape
  readonly items?: Shape
}

/** All of these, and no others. A name with `?` may be absent. */
export function object(properties: Readonly<Record<string, Shape>>): Shape {
  const names = Object.keys(properties)
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(properties).map(([name, shape]) => [name.replace(/\?$/, ''), shape])),
    required: names.filter((name) => !name.endsWith('?')),
    additionalProperties: false,
  }
}

/** Anything by name. */
export function record(values: Shape): Shape {
  return { type: 'object', additionalProperties: values }
}

export function array(items: Shape): Shape {
  return { type: 'array', items }
}

export function oneOf(...values: readonly (string | number | boolean)[]): Shape {
  return { enum: values }
}

export const string: Shape = { type: 'string' }
export const number: Shape = { type: 'number' }
export const integer: Shape = { type: 'integer' }
export const boolean: Shape = { type: 'boolean' }
/** ISO 8601, in UTC. */
export const time: Shape = { type: 'string', format: 'date-time' }
export const anything: Shape = {}

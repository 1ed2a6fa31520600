/** Holds a value against a shape: the part of JSON Schema that `src/cli/shape.ts` writes. Answers with what is wrong. */
import type { Shape } from '../../src/cli/shape.js'

export function problems(value: unknown, shape: Shape, at = '$'): string[] {
  const types = shape.type === undefined ? [] : [shape.type].flat()
  if (types.length > 0 && !types.some((type) => isOf(value, type))) return [`${at} is no ${types.join(' or ')}`]
  if (shape.enum && !shape.enum.includes(value as string)) return [`${at} is none of ${shape.enum.join(', ')}`]
  if (shape.format === 'date-time' && Number.isNaN(Date.parse(value as string))) return [`${at} is no time`]
  if (shape.items) return (value as unknown[]).flatMap((item, n) => problems(item, shape.items!, `${at}[${n}]`))
  if (!types.includes('object')) return []
  const { properties = {}, required = [], additionalProperties = true } = shape
  const missing = required
    .filter((name) => !Object.hasOwn(value as object, name))
    .map((name) => `${at}.${name} is missing`)
  const wrong = Object.entries(value as object).flatMap(([name, inner]) => {
    const own = Object.hasOwn(properties, name) ? properties[name]! : additionalProperties
    if (own === false) return [`${at}.${name} is not declared`]
    return own === true ? [] : problems(inner, own, `${at}.${name}`)
  })
  return [...missing, ...wrong]
}

function isOf(value: unknown, type: string): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    default:
      return typeof value === type
  }
}

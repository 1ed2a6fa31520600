/** A value as a query has it: in quotes if it would not be one value without. */
export function quote(value: string): string {
  return /^[^\s,"]+$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`
}

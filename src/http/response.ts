/** Responses of any implementation of the Fetch API: a server may have put a class of its own in the place of the global. */
export function isResponse(value: unknown): value is Response {
  if (typeof value !== 'object' || value === null) return false
  const { status, headers, arrayBuffer } = value as Partial<Response>
  return typeof status === 'number' && typeof headers?.get === 'function' && typeof arrayBuffer === 'function'
}

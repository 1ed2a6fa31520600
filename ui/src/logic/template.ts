/** Whether an error belongs to a group of failures, by the words that the group shows: ‹n› and the like stand for anything. */
export function fitsTemplate(template: string, message: string): boolean {
  const parts = template.split(/‹\w+›/)
  if (!message.startsWith(parts[0]!)) return false
  let at = parts[0]!.length
  for (const part of parts.slice(1, -1)) {
    const found = message.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  const last = parts.at(-1)!
  return parts.length === 1 ? message === template : message.length - last.length >= at && message.endsWith(last)
}

/** JSON as it was written: to parse it and write it again would round numbers beyond 2^53. */

export type WrittenMembers = () => ReadonlyMap<string, string>

/** The members of an object as they stand in the document, which is known to be JSON. It is read when first asked for. */
export function writtenMembers(json: string): WrittenMembers {
  let members: Map<string, string> | undefined
  return () => {
    if (members) return members
    members = new Map()
    for (let key = json.indexOf('"'); key !== -1;) {
      const keyEnd = endOfString(json, key) + 1
      const start = json.indexOf(':', keyEnd) + 1
      const end = endOfValue(json, start)
      // Of several members of one name the last counts, as for JSON.parse.
      members.set(JSON.parse(json.slice(key, keyEnd)) as string, json.slice(start, end).trim())
      key = json.indexOf('"', end)
    }
    return members
  }
}

/** Where a value ends that is followed by a comma or the end of its object. */
function endOfValue(json: string, start: number): number {
  let depth = 0
  for (let at = start; at < json.length; at++) {
    const character = json[at]
    if (character === '"') at = endOfString(json, at)
    else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') {
      if (depth === 0) return at
      depth--
    } else if (character === ',' && depth === 0) return at
  }
  return json.length
}

function endOfString(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    if (json[at] === '\\') at++
    else if (json[at] === '"') return at
  }
}

/** A filter in words, for people who confirm it: "dead messages of charge-card of type payment.requested". */

/** A part of a query, as the server reads it. */
export interface Part {
  readonly qualifier: string
  readonly values: readonly string[]
}

/** `messages` stands between what comes before it and behind it. */
export function filterWords(parts: readonly Part[]): string {
  const of = (name: string): readonly string[] | undefined => parts.find(({ qualifier }) => qualifier === name)?.values
  const states = of('state')
  const isOutbox = of('box')?.includes('outbox') ?? false
  const noun = isOutbox ? 'events' : 'messages'
  const head = [...(of('blocking')?.includes('true') ? ['blocking'] : []), ...(states ? [either(states)] : [])]
  const tail = parts.flatMap((part) => behind(part, isOutbox))
  const all = head.length === 0 && tail.length === 0 ? ['all'] : head
  return [...all, noun, ...tail].join(' ')
}

function behind({ qualifier, values }: Part, isOutbox: boolean): readonly string[] {
  const said = either(values)
  if (qualifier.startsWith('data.')) return [`whose ${qualifier} is ${said}`]
  switch (qualifier) {
    case 'consumer':
      return [values[0] === '' ? 'refused at the door' : `${isOutbox ? 'for' : 'of'} ${said}`]
    case 'type':
      return [`of type ${said}`]
    case 'id':
      return [`with id ${said}`]
    case 'key':
      return [`with key ${said}`]
    case 'source':
      return [values.length === 1 && values[0] === '' ? 'without a source' : `from ${said}`]
    case 'reason':
      return [`refused as ${said}`]
    case 'error':
      return [`whose error has “${values.join('” or “')}”`]
    case 'fingerprint':
      return [`that failed like ${said}`]
    case 'after':
    case 'before':
      return [`received ${qualifier} ${said}`]
    case 'state':
    case 'box':
    case 'blocking':
      return []
    default:
      return [`with ${qualifier} ${said}`]
  }
}

/** a, b or c */
function either(values: readonly string[]): string {
  const [last = '', ...before] = [...values].reverse()
  return before.length === 0 ? last : `${before.reverse().join(', ')} or ${last}`
}

/** "1 203 others died of the same error": a link to all of them. Whose error it is the server says: words alone may look alike. */
import { api, zone, type Fate, type FailureGroup } from '../../api.js'
import { plural } from '../../logic/format.js'
import { quote } from '../../logic/query.js'
import { fitsTemplate } from '../../logic/template.js'
import { useLoad } from '../../load.js'
import { box, search } from '../../router.js'
import { Time } from '../time.js'

/** So many are asked for, the likeliest first. */
const MOST_ASKED = 4

export function Others({ fate }: { fate: Fate }) {
  const { consumer, source, id, state, failure, outbox } = fate
  const isDead = state === 'dead' && failure !== undefined && !outbox
  const load = useLoad(isDead ? [box.value, consumer, source, id].join('\n') : undefined, (signal) =>
    groupOf(box.value, fate, signal),
  )
  const group = isDead ? load.value.value?.group : undefined
  if (!group || group.count < 2) return null
  return (
    <>
      <a class="link" href={search(group.query)}>
        {plural(group.count - 1, 'other')}
      </a>{' '}
      died of the same error since <Time at={group.firstAt} short />.
    </>
  )
}

async function groupOf(of: string, fate: Fate, signal: AbortSignal): Promise<{ group: FailureGroup | undefined }> {
  const { consumer, source, id } = fate
  const { groups } = await api.failures({ box: of, consumer }, { signal })
  for (const group of likely(groups, fate)) {
    const q = `${group.query} id:${quote(id)} source:${quote(source)}`
    const { items } = await api.messages({ box: of, q, zone: zone(), limit: 1 }, { signal })
    if (items.length > 0) return { group }
  }
  return { group: undefined }
}

function likely(groups: readonly FailureGroup[], { consumer, failure }: Fate): readonly FailureGroup[] {
  const fits = ({ message }: FailureGroup): boolean =>
    message !== undefined && failure!.message !== undefined && fitsTemplate(message, failure!.message)
  return groups
    .filter((one) => one.consumer === consumer && one.name === failure!.name && one.code === failure!.code)
    .sort((one, other) => Number(fits(other)) - Number(fits(one)))
    .slice(0, MOST_ASKED)
}

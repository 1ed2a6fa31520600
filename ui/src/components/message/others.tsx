/** "1 203 others died of the same error": a link to all of them, if their group is one of the largest of the consumer. */
import { api, type Fate, type FailureGroup } from '../../api.js'
import { plural } from '../../logic/format.js'
import { useLoad } from '../../load.js'
import { box, search } from '../../router.js'
import { Time } from '../time.js'

export function Others({ fate }: { fate: Fate }) {
  const { consumer, source, id, fingerprint } = fate
  const isDead = fingerprint !== undefined
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
  const { consumer, fingerprint } = fate
  const { groups } = await api.failures({ box: of, consumer }, { signal })
  return { group: groups.find((one) => one.consumer === consumer && one.fingerprint === fingerprint) }
}

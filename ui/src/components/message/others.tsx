/** "1 203 others died of the same error": a link to all of them. */
import { api, type Fate, type FailureGroup } from '../../api.js'
import { plural } from '../../logic/format.js'
import { fitsTemplate } from '../../logic/template.js'
import { useLoad } from '../../load.js'
import { box, search } from '../../router.js'
import { Time } from '../time.js'

export function Others({ fate }: { fate: Fate }) {
  const { consumer, state, failure } = fate
  const isDead = state === 'dead' && failure !== undefined
  const load = useLoad(isDead ? `${box.value}\n${consumer}` : undefined, (signal) =>
    api.failures({ box: box.value, consumer }, { signal }),
  )
  const group = isDead ? load.value.value?.groups.find((one) => isOf(one, fate)) : undefined
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

function isOf(group: FailureGroup, { consumer, type, failure }: Fate): boolean {
  if (group.consumer !== consumer || group.name !== failure!.name || group.code !== failure!.code) return false
  if (!group.types.includes(type)) return false
  return group.message === undefined || failure!.message === undefined || fitsTemplate(group.message, failure!.message)
}

/** What a person decides about one body in quarantine: by its reason, a comparison, a question, or what is wrong with it. */
import { api } from '../../api.js'
import { useLoad } from '../../load.js'
import { box } from '../../router.js'
import { Loaded } from '../loaded.js'
import { SkeletonRows } from '../skeleton.js'
import { ConflictPanel } from './conflict.js'
import { EffectAnswer } from './effect-answer.js'
import { RefusedPanel } from './refused.js'
import { identityOf } from '../../logic/identity.js'

interface Props {
  /** Its number, or who it is for and what it is: see placeOf. */
  n: string
  reason: string
  /** Something was decided. */
  onDone(): void
}

export function Decision({ n, reason, onDone }: Props) {
  return reason === 'effect-unknown' ? <Effects n={n} onDone={onDone} /> : <Body n={n} reason={reason} />
}

function Body({ n, reason }: Omit<Props, 'onDone'>) {
  const of = box.value
  const load = useLoad(`conflict ${of} ${n}`, (signal) => api.conflict({ box: of, n }, { signal }))
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {(conflict) =>
        reason === 'conflict' ? (
          <ConflictPanel of={conflict} box={of} />
        ) : (
          <RefusedPanel of={conflict.second} box={of} />
        )
      }
    </Loaded>
  )
}

function Effects({ n, onDone }: Omit<Props, 'reason'>) {
  const of = box.value
  const [consumer = '', source = '', id = ''] = n.split('\n')
  const at = { box: of, ...identityOf({ id, source, consumer }) }
  const load = useLoad(`effects ${of} ${n}`, (signal) => api.message(at, { signal }))
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {({ fates }) => (
        <>
          {fates.filter((fate) => fate.consumer === consumer && fate.source === source).slice(0, 1).map((fate) => (
            <EffectAnswer key={fate.id} of={fate} box={of} onDone={onDone} />
          ))}
        </>
      )}
    </Loaded>
  ) // prettier-ignore
}

function Waiting() {
  return (
    <section class="panel">
      <SkeletonRows rows={6} />
    </section>
  )
}

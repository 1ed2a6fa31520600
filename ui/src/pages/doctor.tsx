/** Doctor: what is wrong with the box and its database, why it matters, and exactly what to do. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { api, type Doctor } from '../api.js'
import { Button } from '../components/button.js'
import { copy } from '../components/copy-button.js'
import { Empty } from '../components/empty.js'
import { Loaded } from '../components/loaded.js'
import { PageHead } from '../components/page-head.js'
import { Shown } from '../components/shown.js'
import { SkeletonRows } from '../components/skeleton.js'
import { Pill, type Tint } from '../components/state-pill.js'
import type { Shape } from '../components/silhouette.js'
import { Time } from '../components/time.js'
import { useLoad } from '../load.js'
import { doctorTitle, figureWords, SEVERITY_WORDS, worstFirst, type Severity } from '../logic/doctor-words.js'
import { visible } from '../logic/visible.js'
import { box } from '../router.js'

/** What is known is shown at once, and the rest as it is found. */
const PATIENCE_MS = 150
const AGAIN_MS = 400

export function DoctorPage() {
  const of = box.value
  const load = useLoad(`doctor ${of}`, (signal) => api.doctor({ box: of, patience: PATIENCE_MS }, { signal }))
  const told = load.value.value
  useEffect(() => {
    if (!told?.looking) return
    const timer = setTimeout(load.reload, AGAIN_MS)
    return () => clearTimeout(timer)
  }, [told])
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {({ at, findings, looking }) => (
        <>
          <PageHead
            title={doctorTitle(findings, looking === true)}
            end={
              <Button icon="retry" blocked={load.busy.value || looking ? 'It looks.' : undefined} onClick={load.reload}>
                Look again
              </Button>
            }
          >
            {looking ? 'It looks. What is below is from' : 'Looked at'} <Time at={at} />: settings, storage, work that
            does not move, sinks and connections.
          </PageHead>
          <section class="panel" aria-label="Findings" {...(looking && { 'aria-busy': true })}>
            {findings.length === 0 && looking ? (
              <SkeletonRows rows={6} />
            ) : findings.length === 0 ? (
              <Empty icon="check" title="All clear">
                Settings, storage, work, sinks and connections are as they should be.
              </Empty>
            ) : (
              worstFirst(findings).map((finding, n) => <Finding key={`${finding.code} ${n}`} of={finding} />)
            )}
          </section>
        </>
      )}
    </Loaded>
  )
}

const LOOKS: Readonly<Record<Severity, readonly [Tint, Shape]>> = {
  serious: ['dead', 'dead'],
  warning: ['warn', 'behind'],
  note: ['pending', 'pending'],
}

function Finding({ of: { code, severity, what, why, figures, fix } }: { of: Doctor['findings'][number] }) {
  const open = useSignal(false)
  const [tint, shape] = LOOKS[severity]
  const known = Object.entries(figures)
  return (
    <article class="advice">
      <div class="advice-head">
        <Pill tint={tint} shape={shape} word={SEVERITY_WORDS[severity]} />
        <code class="faint">{code}</code>
      </div>
      <div class="advice-body">
        <h2>
          <Shown text={what} />
        </h2>
        <p class="mut">
          <Shown text={why} />
        </p>
        <div class="fix">
          <pre class="code" tabIndex={0} role="group" aria-label="What mends it">
            {visible(fix)}
          </pre>
          <Button icon="copy" label={`Copy what mends ${code}`} onClick={() => void copy(fix, 'the fix')}>
            Copy
          </Button>
        </div>
        {known.length > 0 && (
          <>
            <button
              type="button"
              class="link-btn"
              aria-expanded={open.value}
              onClick={() => (open.value = !open.value)}
            >
              {open.value ? 'Hide the figures' : 'Show the figures'}
            </button>
            {open.value && (
              <dl class="facts figures">
                {known.map(([name, value]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd class="mono">
                      <Shown text={figureWords(value)} />
                    </dd>
                  </div>
                ))}
              </dl>
            )}
          </>
        )}
      </div>
    </article>
  )
}

function Waiting() {
  return (
    <>
      <PageHead title="Doctor">It looks at the box and its database.</PageHead>
      <section class="panel">
        <SkeletonRows rows={6} />
      </section>
    </>
  )
}

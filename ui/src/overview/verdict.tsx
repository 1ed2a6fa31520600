/** The verdict, then one row for each finding, worst first. */
import { useEffect } from 'preact/hooks'
import type { Finding, Overview } from '../api.js'
import { announce } from '../announce.js'
import { RANGES, range, setRange, zoom } from '../charts/zoom.js'
import { Button } from '../components/button.js'
import { Segmented } from '../components/segmented.js'
import { Pill } from '../components/state-pill.js'
import { Since } from '../components/time.js'
import { minute } from '../logic/when.js'
import { tell, verdictOf } from '../logic/verdict.js'
import { clock, now } from '../now.js'
import { href } from '../router.js'

export function Verdict({ overview }: { overview: Overview }) {
  const { title, text } = verdictOf(overview, (at) => minute(at, now.value, clock.value))
  useEffect(() => announce(title), [title])
  return (
    <section class="verdict" aria-labelledby="verdict">
      <div class="verdict-head">
        <div>
          <h1 id="verdict">{title}</h1>
          <p>{text}</p>
        </div>
        <div class="btns">
          {zoom.value && (
            <Button kind="bare" icon="x" onClick={() => (zoom.value = undefined)}>
              Reset zoom
            </Button>
          )}
          <Segmented label="Time range" choices={RANGES} value={range.value.value} onChoose={setRange} />
        </div>
      </div>
      {overview.findings.length > 0 && (
        <ul class="panel">
          {overview.findings.map((finding, n) => (
            <Row
              // Not by its text, which may count seconds.
              key={`${finding.code} ${finding.consumer ?? finding.sink ?? n}`}
              finding={finding}
              overview={overview}
            />
          ))}
        </ul>
      )}
    </section>
  )
}

function Row({ finding, overview }: { finding: Finding; overview: Overview }) {
  const { tint, shape, word, what, why, code, page, query, go, since } = tell(finding, overview)
  return (
    <li class="finding">
      <span>
        <Pill tint={tint} shape={shape} word={word} />
      </span>
      <span class="what">
        <a href={href(page, query)}>
          <b>{what}</b>
        </a>
        <span class="why">
          {why.map((part) => ` · ${part}`)}
          {code !== undefined && (
            <>
              {' · '}
              <span class="mono">
                <bdi>{code}</bdi>
              </span>
            </>
          )}
        </span>
      </span>
      <span class="since">{since !== undefined && <Since at={since} />}</span>
      <span class="go" aria-hidden="true">
        {go} →
      </span>
    </li>
  )
}

/** A chart: its number now, or then while the pointer is over one; the line; and the same as a table for whoever wants it. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Button } from '../components/button.js'
import { dark } from '../theme.js'
import { clock } from '../now.js'
import { ChartTable, type Column } from './chart-table.js'
import type { Drawing, Plot } from './drawing.js'
import { shown } from './zoom.js'

interface Props {
  title: string
  sub?: string
  /** Beside the title, in the small ones. */
  aside?: ComponentChildren
  /** Below it. */
  head?: ComponentChildren
  /** What happened, for whoever does not see it. */
  sentence: string
  drawing: Drawing
  columns: readonly Column[]
  mini?: boolean
  /** Shows the time of the crosshair. */
  flag?: boolean
}

export function Chart({ title, sub, aside, head, sentence, drawing, columns, mini = false, flag = false }: Props) {
  const table = useSignal(false)
  const empty = drawing.lines.every(({ values }) => values.every((value) => value === null))
  return (
    <figure class={`chart ${mini ? 'chart-mini' : ''}`} aria-label={title}>
      <div class="chart-head">
        <h2>{title}</h2>
        {sub !== undefined && <span class="chart-sub">{sub}</span>}
        {aside}
        <Button
          small
          kind="bare"
          class="chart-as"
          icon={table.value ? 'overview' : 'table'}
          label={table.value ? `Show ${title} as a chart` : `Show ${title} as a table`}
          onClick={() => (table.value = !table.value)}
        />
      </div>
      {head !== undefined && <div class="chart-line">{head}</div>}
      {table.value ? (
        <ChartTable title={title} times={drawing.times} columns={columns} />
      ) : (
        <div class="chart-room">
          <Canvas drawing={drawing} sentence={sentence} flag={flag} />
          {empty && (
            <p class="chart-none">
              <span>Nothing recorded yet</span>
            </p>
          )}
        </div>
      )}
    </figure>
  )
}

/** Its code is as large as all the rest: the page is there before it. */
const loading = import('./plot.js')

function Canvas({ drawing, sentence, flag }: { drawing: Drawing; sentence: string; flag: boolean }) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useSignal<Plot | undefined>(undefined)
  const latest = useRef(drawing)
  latest.current = drawing
  // The range is a part of what is drawn, and so is the zone of its times.
  const { min, max } = shown.value
  const { utc } = clock.value
  const isDark = dark.value
  useEffect(() => {
    const gone = new AbortController()
    const watch = new ResizeObserver(() => plot.value?.resize())
    void loading.then(({ createPlot }) => {
      if (gone.signal.aborted) return
      plot.value = createPlot(host.current!, latest.current, flag)
      watch.observe(host.current!)
    })
    return () => {
      gone.abort()
      watch.disconnect()
      plot.peek()?.end()
    }
  }, [])
  useEffect(() => plot.peek()?.update(drawing), [drawing, min, max])
  useEffect(() => plot.peek()?.redraw(), [isDark, utc])
  return <div class="chart-canvas" role="img" aria-label={sentence} ref={host} />
}

/** A line without axes: how something went. Gaps are gaps. */
import { sparkPath } from '../logic/spark.js'

interface Props {
  values: readonly (number | null)[]
  /** Beyond its limit. */
  bad?: boolean
  width?: number
  height?: number
}

export function Sparkline({ values, bad = false, width = 84, height = 20 }: Props) {
  const { line, area, last } = sparkPath(values, width, height)
  return (
    <svg
      class={`spark ${bad ? 'spark-bad' : 'spark-calm'}`}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      aria-hidden="true"
    >
      {area !== '' && <path class="ar" d={area} />}
      {line !== '' && <path class="ln" d={line} />}
      {last && <circle class="pt" cx={last.x} cy={last.y} r="2" />}
    </svg>
  )
}

/** Bars: how many in each hour. */
export function Bars({ values, width = 120, height = 24 }: Omit<Props, 'bad'>) {
  const most = Math.max(1, ...values.map((value) => value ?? 0))
  const step = width / Math.max(1, values.length)
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {values.map((value, n) => {
        const tall = value ? Math.max(2, (value / most) * height) : 1
        return (
          <rect
            key={n}
            class={value ? 'bar' : 'bar-0'}
            x={(n * step).toFixed(1)}
            y={(height - tall).toFixed(1)}
            width={Math.max(1, step - 1.5).toFixed(1)}
            height={tall.toFixed(1)}
          />
        )
      })}
    </svg>
  )
}

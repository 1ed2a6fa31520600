/** What a chart draws, as a table: every step that is shown, the newest first. A row left out would be a figure left out. */
import { writeTime } from './write-time.js'
import { shown } from './zoom.js'

export interface Column {
  readonly title: string
  readonly values: readonly (number | null)[]
  write(value: number): string
}

export function ChartTable({
  title,
  times,
  columns,
}: {
  title: string
  times: readonly number[]
  columns: readonly Column[]
}) {
  const { min, max } = shown.value
  const rows = times.flatMap((time, n) => (time >= min && time <= max ? [n] : [])).reverse()
  return (
    <div class="chart-table" role="region" aria-label={`${title}, as a table`} tabIndex={0}>
      <table class="mini">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {columns.map(({ title: name }) => (
              <th scope="col" class="num" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((n) => (
            <tr key={times[n]}>
              <th scope="row">{writeTime(times[n]!, Math.min(max - min, 86_400))}</th>
              {columns.map(({ title: name, values, write }) => (
                <td class="num" key={name}>
                  {values[n] == null ? '–' : write(values[n])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

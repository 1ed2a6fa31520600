/**
 * One uPlot, which is loaded when a chart is first shown: y from 0, at most three labels, one crosshair with the others. It draws on a canvas and sets what styles it needs
 * through the CSSOM, which the policy of the page allows.
 */
import uPlot from 'uplot'
import { ticks, topOf } from '../logic/axis.js'
import { colour } from './colours.js'
import type { Drawing, Line, Plot } from './drawing.js'
import { writeTime } from './write-time.js'
import { pointedAt, shown, zoom } from './zoom.js'

const AXIS_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
const CROSSHAIR = 'overview'
/** A click is not a drag. */
const LEAST_DRAG_PX = 8

export function createPlot(host: HTMLElement, first: Drawing, flag: boolean): Plot {
  let drawing = first
  const most = (): number => {
    const { min, max } = shown.peek()
    const seen = drawing.lines.flatMap(({ values }) =>
      values.filter((value, n) => value !== null && drawing.times[n]! >= min && drawing.times[n]! <= max),
    )
    return Math.max(0, ...(seen as number[]))
  }
  const size = (): { width: number; height: number } => ({ width: host.clientWidth, height: host.clientHeight })
  const flagElement = flag ? document.createElement('div') : undefined
  const plot = new uPlot(
    {
      ...size(),
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: cursorOf(() => drawing),
      scales: {
        x: { time: true, range: () => [shown.peek().min, shown.peek().max] },
        y: { range: () => [0, topOf(most(), drawing.least)] },
      },
      axes: [timeAxis(), valueAxis(() => drawing)],
      series: [{}, ...first.lines.map((_, n) => seriesOf(() => drawing, n))],
      hooks: {
        draw: [(self) => drawLimit(self, drawing)],
        setCursor: [(self) => point(self, flagElement)],
        setSelect: [zoomTo],
      },
    },
    dataOf(first),
    host,
  )
  if (flagElement) {
    flagElement.className = 'u-flag'
    flagElement.hidden = true
    plot.over.append(flagElement)
  }
  plot.over.addEventListener('dblclick', () => (zoom.value = undefined))
  plot.over.addEventListener('mouseleave', () => (pointedAt.value = undefined))
  return {
    update(next) {
      drawing = next
      plot.setData(dataOf(next))
    },
    redraw: () => plot.redraw(false, true),
    resize() {
      if (host.clientWidth > 0 && (plot.width !== host.clientWidth || plot.height !== host.clientHeight))
        plot.setSize(size())
    },
    end: () => plot.destroy(),
  }
}

function dataOf({ times, lines }: Drawing): uPlot.AlignedData {
  return [times as number[], ...lines.map(({ values }) => values)]
}

function seriesOf(drawing: () => Drawing, n: number): uPlot.Series {
  const own = (): Line => drawing().lines[n]!
  return {
    width: 1.5,
    spanGaps: false,
    points: { show: false },
    stroke: (self) => ink(self, own(), drawing().limit),
    ...(own().area !== undefined && { fill: (self: uPlot) => ink(self, own(), drawing().limit, own().area) }),
    ...(own().dashed && { dash: [5, 3] }),
  }
}

/** Its colour, or below the limit its colour and above it the other: a gradient with a hard stop. */
function ink(self: uPlot, line: Line, limit: number | undefined, alpha = 1): string | CanvasGradient {
  const below = colour(line.colour, alpha)
  const top = self.scales['y']!.max
  if (limit === undefined || top == null || top <= limit) return below
  const { top: from, height } = self.bbox
  const stop = Math.min(1, Math.max(0, 1 - limit / top))
  const gradient = self.ctx.createLinearGradient(0, from, 0, from + height)
  const above = colour('over', alpha === 1 ? 1 : alpha + 0.04)
  gradient.addColorStop(0, above)
  gradient.addColorStop(stop, above)
  gradient.addColorStop(stop, below)
  gradient.addColorStop(1, below)
  return gradient
}

function drawLimit(self: uPlot, { limit, write }: Drawing): void {
  const top = self.scales['y']!.max
  if (limit === undefined || top == null || top < limit) return
  const { ctx, bbox } = self
  const y = Math.round(self.valToPos(limit, 'y', true)) + 0.5
  const scale = devicePixelRatio
  ctx.save()
  ctx.strokeStyle = colour('over')
  ctx.fillStyle = colour('over')
  ctx.lineWidth = scale
  ctx.setLineDash([2 * scale, 3 * scale])
  ctx.beginPath()
  ctx.moveTo(bbox.left, y)
  ctx.lineTo(bbox.left + bbox.width, y)
  ctx.stroke()
  ctx.font = AXIS_FONT.replace('11px', `${11 * scale}px`)
  ctx.textAlign = 'left'
  ctx.textBaseline = 'bottom'
  ctx.fillText(`limit ${write(limit)}`, bbox.left + 4 * scale, y - 3 * scale)
  ctx.restore()
}

function valueAxis(drawing: () => Drawing): uPlot.Axis {
  return {
    size: 48,
    gap: 6,
    font: AXIS_FONT,
    stroke: () => colour('axis'),
    grid: { stroke: () => colour('grid'), width: 1 },
    ticks: { show: false },
    splits: (self) => ticks(self.scales['y']!.max ?? 1, drawing().labels, drawing().unit),
    values: (_, splits) => splits.map((split) => (split === 0 ? '0' : drawing().write(split))),
  }
}

function timeAxis(): uPlot.Axis {
  return {
    size: 24,
    gap: 4,
    space: 84,
    font: AXIS_FONT,
    stroke: () => colour('axis'),
    grid: { show: false },
    ticks: { show: false },
    values: (_, splits) => splits.map((split) => writeTime(split, shown.peek().max - shown.peek().min)),
  }
}

function cursorOf(drawing: () => Drawing): uPlot.Cursor {
  return {
    y: false,
    sync: { key: CROSSHAIR, setSeries: false },
    drag: { x: true, y: false, setScale: false },
    // It would go to all there is; back to what was chosen is ours.
    bind: { dblclick: () => null },
    points: {
      size: 9,
      width: 2,
      fill: (self, n) => {
        const line = drawing().lines[n - 1]!
        const { limit } = drawing()
        const value = line.values[self.cursor.idx ?? -1]
        return colour(limit !== undefined && value != null && value > limit ? 'over' : line.colour)
      },
      stroke: () => 'var(--surface)',
    },
  }
}

function point(self: uPlot, flag: HTMLElement | undefined): void {
  const { left = -1, idx } = self.cursor
  const at = left < 0 || idx == null ? undefined : self.data[0][idx]
  // Only the one under the pointer says so: the others follow it.
  if (self.over.matches(':hover')) pointedAt.value = at
  if (!flag) return
  flag.hidden = at === undefined
  if (at === undefined) return
  flag.textContent = writeTime(at, Math.min(7_200, shown.peek().max - shown.peek().min))
  const half = flag.offsetWidth / 2
  const center = Math.min(self.over.clientWidth - half, Math.max(half, self.valToPos(at, 'x')))
  flag.style.setProperty('transform', `translateX(${Math.round(center - half)}px)`)
}

function zoomTo(self: uPlot): void {
  const { left, width } = self.select
  if (width < LEAST_DRAG_PX) return
  zoom.value = { min: self.posToVal(left, 'x'), max: self.posToVal(left + width, 'x') }
  self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
}

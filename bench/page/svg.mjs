/**
 * Bars as SVG, without a dependency. Text and lines have a colour that is readable on white and on black, and take a better
 * one where the reader's theme is known.
 */
const WIDTH = 860
const LABELS = 215
const VALUES = 175
const ROW = 20
const BAR = 13
const GROUP = 26
const FONT = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'

const STYLE = `<style>
.t { fill: #6b7280 } .s { fill: #6b7280; opacity: .85 } .g { stroke: #6b7280; opacity: .25 } .w { stroke: #6b7280 }
@media (prefers-color-scheme: light) { .t { fill: #1f2328 } .s { fill: #57606a } .w { stroke: #1f2328 } }
@media (prefers-color-scheme: dark) { .t { fill: #e6edf3 } .s { fill: #9da7b3 } .w { stroke: #e6edf3 } }
</style>`

/** Its own, by hand, and each peer in a colour of its own. */
export function colourOf(name) {
  const [, colour] = COLOURS.find(([prefix]) => name.startsWith(prefix)) ?? ['', '#8b949e']
  return colour
}
const COLOURS = [
  ['oncebox', '#3b82f6'],
  ['library', '#3b82f6'],
  ['by hand', '#9ca3af'],
  ['limit', '#9ca3af'],
  ['naive', '#ef6c5b'],
  ['dedup', '#e0a32e'],
  ['graphile-worker', '#e0a32e'],
  ['pg-boss', '#2fa37c'],
  ['inline', '#3b82f6'],
  ['together', '#3b82f6'],
  ['stored', '#3b82f6'],
  ['onward', '#3b82f6'],
]

/**
 * Groups of bars: `{ title, note, unit, groups: [{ label, bars: [{ label, value, min, max, text, parts, mark }] }] }`. `parts` are
 * stacked in place of one value; `mark` is a line that the bar should reach.
 */
export function bars({ title, note, groups }) {
  const all = groups.flatMap((group) => group.bars)
  const most = Math.max(...all.flatMap(({ value, max = 0, mark = 0 }) => [value, max, mark]))
  const scale = (value) => (value / most) * (WIDTH - LABELS - VALUES)
  const rows = []
  let y = 54
  for (const { label, bars: list } of groups) {
    if (label) {
      rows.push(text(0, y + 6, label, 't', 'font-weight="600"'))
      y += GROUP - 6
    }
    for (const bar of list) {
      rows.push(row(bar, y, scale))
      y += ROW
    }
    y += 8
  }
  const height = y + 2
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escape(title)}" ${FONT} font-size="12">
${STYLE}
${text(0, 18, title, 't', 'font-size="15" font-weight="600"')}
${text(0, 36, note, 's')}
<line class="g" x1="${LABELS}" y1="44" x2="${LABELS}" y2="${height}"/>
${rows.join('\n')}
</svg>
`
}

function row({ label, value, min, max, text: shown, parts, mark }, y, scale) {
  const middle = y + BAR / 2
  const colour = colourOf(label)
  const drawn = []
  let x = LABELS
  for (const [at, part] of (parts ?? [value]).entries()) {
    const width = scale(part)
    const opacity = at === 0 ? '' : ' opacity=".5"'
    drawn.push(`<rect x="${at1(x)}" y="${y}" width="${at1(width)}" height="${BAR}" fill="${colour}"${opacity}/>`)
    x += width
  }
  if (min !== undefined && max > min) {
    const [from, to] = [LABELS + scale(min), LABELS + scale(max)].map(at1)
    drawn.push(`<path class="w" d="M${from} ${middle}H${to}M${from} ${y + 3}v${BAR - 6}M${to} ${y + 3}v${BAR - 6}"/>`)
  }
  if (mark !== undefined) {
    const at = at1(LABELS + scale(mark))
    drawn.push(`<path class="w" stroke-width="2" stroke-dasharray="3 2" d="M${at} ${y - 2}v${BAR + 4}"/>`)
  }
  const end = Math.max(x, LABELS + scale(max ?? 0), LABELS + scale(mark ?? 0))
  return [
    text(LABELS - 8, middle + 4, label, 't', 'text-anchor="end"'),
    ...drawn,
    text(at1(end + 8), middle + 4, shown, 's'),
  ].join('\n')
}

function text(x, y, words, style, further = '') {
  return `<text class="${style}" x="${x}" y="${y}"${further && ` ${further}`}>${escape(words)}</text>`
}

function at1(value) {
  return Number(value.toFixed(1))
}

function escape(words) {
  return String(words).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

/** Times and sizes as people read them. */

/** `0 s`, `1.2 s`, `3 m 20 s`, `2 h 5 m`, `4 d 3 h` */
export function showDuration(ms: number): string {
  if (ms < 1) return '0 s'
  if (ms < 10_000) return `${(Math.max(ms, 100) / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return two(minutes, 'm', seconds % 60, 's')
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? two(hours, 'h', minutes % 60, 'm') : two(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function two(large: number, unit: string, small: number, smaller: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`
}

/** `1 234 567` */
export function showCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** `1 message`, `2 messages` */
export function counted(count: number, thing: string): string {
  return `${showCount(count)} ${thing}${count === 1 ? '' : 's'}`
}

/** To the second, in UTC: the same on every machine. */
export function showTime(at: Date): string {
  return at
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z')
}

/** Numbers and durations, as the whole interface writes them. */

/** A narrow space that does not break: groups of three. */
const NARROW = '\u202f'

/** 1 234 567 */
export function count(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, NARROW)
}

/** ≈ 1 234 567 if it is an estimate, 10 000+ if it was not counted further. */
export function about(n: number, { estimated = false, atLeast = false } = {}): string {
  return `${estimated && n > 0 ? `≈${NARROW}` : ''}${count(n)}${atLeast ? '+' : ''}`
}

/** 1 message, 2 messages. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`
}

/** 0.4 s · 48 s · 12 min 31 s · 5 h · 3 d */
export function duration(ms: number): string {
  if (ms < 0.5) return '0 s'
  if (ms < 100) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return `${minutes} min${whole % 60 === 0 ? '' : ` ${whole % 60} s`}`
  return span(ms)
}

/** 25 min · 5 h · 3 d: how long something has lasted, in one unit. */
export function span(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 1) return `${Math.max(0, Math.round(ms / 1000))} s`
  if (minutes < 60) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  if (hours < 48) return `${hours} h`
  return `${count(hours / 24)} d`
}

/** 63.4, and without a fraction when that says nothing. */
export function rate(perSecond: number): string {
  return perSecond >= 1_000 ? count(perSecond) : perSecond.toFixed(1)
}

/** 0.3 % */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return `0${NARROW}%`
  const share = (part / whole) * 100
  return `${share < 10 ? share.toFixed(1) : Math.round(share)}${NARROW}%`
}

/** 60 k: for axes, where it need not be exact. */
export function short(n: number): string {
  if (n >= 1e9) return `${trim(n / 1e9)}${NARROW}G`
  if (n >= 1e6) return `${trim(n / 1e6)}${NARROW}M`
  if (n >= 1e4) return `${trim(n / 1e3)}${NARROW}k`
  return n < 10 && !Number.isInteger(n) ? trim(n) : count(n)
}

export function bytes(n: number): string {
  if (n < 1_000) return `${n} B`
  if (n < 1e6) return `${trim(n / 1e3)} kB`
  return `${trim(n / 1e6)} MB`
}

function trim(n: number): string {
  return n.toFixed(n < 10 ? 1 : 0).replace(/\.0$/, '')
}

/** As much of an id as the list of messages has room for. Both ends tell ids apart, the middle seldom does. */
export function shortened(id: string): string {
  return id.length > 17 ? `${id.slice(0, 8)}…${id.slice(-8)}` : id
}

/** Icons: lines of one and a half pixels in a square of 16. Drawn in place: a `<base>` would lead references astray. */
const PATHS = {
  overview: 'M2 10.5 5.5 6.5 8.5 9 14 3M2 14h12',
  messages: 'M2.5 3.5h11v9h-11zM2.5 4.5 8 9l5.5-4.5',
  failures: 'M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5L5.5 2ZM8 5v3.5M8 11v.1',
  quarantine: 'M8 1.5 14.5 8 8 14.5 1.5 8 8 1.5ZM6 8h4',
  keys: 'M2 4h3v3H2zM2 10h3v3H2zM7.5 5.5H14M7.5 11.5H14',
  outbox: 'M2.5 9.5v4h11v-4M8 10.5v-8M4.8 5.5 8 2.3l3.2 3.2',
  doctor: 'M2 8.5h3l1.5-4 3 7.5 1.8-5 .9 1.500H14',
  audit: 'M3 2h7l3 3v9H3zM5.5 7.5h5M5.5 10.5h5',
  settings:
    'M2 5h6M12 5h2M2 11h2M8 11h6M10 3.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.600ZM6 9.200a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.600Z',
  states: 'M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5H9z',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.3 10.3 14 14',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2 12.5 8 5 12.8V3.2Z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  x: 'M4 4l8 8M12 4l-8 8',
  chev: 'M6 3.5 10.5 8 6 12.5',
  retry: 'M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3',
  key: 'M2 4h12v8H2zM4.5 6.5h.1M8 6.5h.1M11.5 6.5h.1M5 9.5h6',
  lock: 'M3.5 7h9v6.5h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2',
  plug: 'M5 2v3M11 2v3M3.5 5h9v2.5a4.5 4.5 0 0 1-9 0V5ZM8 12v2.5',
  check: 'M3 8.5 6.5 12 13 4.5',
  table: 'M2.5 3.5h11v9h-11zM2.5 6.500h11M2.5 9.500h11M6.5 6.500v6',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Z',
  swap: 'M5 6.5 8 3.500l3 3M5 9.500l3 3 3-3',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, class: more = '' }: { name: IconName; class?: string }) {
  return (
    <svg class={`ic ${more}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
      {name === 'theme' && <path d="M8 2v12a6 6 0 0 0 0-12Z" fill="currentColor" stroke="none" />}
    </svg>
  )
}

export function Mark() {
  return (
    <svg viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <rect x="1.5" y="1.5" width="17" height="17" rx="3" fill="none" stroke="currentColor" stroke-width="2" />
      <circle cx="10" cy="10" r="3.1" fill="currentColor" />
    </svg>
  )
}

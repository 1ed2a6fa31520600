/** Silhouettes: each state has a shape of its own, so that none is told by its colour alone. */
const SHAPES = {
  pending: 'M6 .8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 6 .8Zm0 1.6a3.6 3.6 0 1 1 0 7.2 3.6 3.6 0 0 1 0-7.2Z',
  processing: 'M6 .8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 6 .8Zm0 1.6v7.2a3.6 3.6 0 0 1 0-7.2Z',
  handled: 'M6 .6a5.4 5.4 0 1 0 0 10.8A5.4 5.4 0 0 0 6 .6Zm2.9 3.9L5.4 8.3a.7.7 0 0 1-1 0L3 6.8l1-1 .9 1 3-3.2 1 .9Z',
  dead: 'M3.7.6h4.6l3.1 3.1v4.6l-3.1 3.1H3.7L.6 8.3V3.7L3.7.6Zm.9 3L3.6 4.6 5 6 3.6 7.4l1 1L6 7l1.4 1.4 1-1L7 6l1.4-1.4-1-1L6 5 4.6 3.6Z',
  quarantined: 'M6 0 12 6 6 12 0 6 6 0Zm-.7 3v3.6h1.4V3H5.3Zm0 4.4v1.4h1.4V7.4H5.3Z',
  discarded:
    'M6 .8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 6 .8Zm0 1.5c.8 0 1.5.2 2.1.6L2.9 8.1A3.7 3.7 0 0 1 6 2.3Zm0 7.4c-.8 0-1.5-.2-2.1-.6l5.2-5.2A3.7 3.7 0 0 1 6 9.7Z',
  paused: 'M2 1.5h2.8v9H2zM7.2 1.5H10v9H7.2z',
  behind: 'M6 .7 11.8 11H.2L6 .7Zm-.7 3.6v3.3h1.4V4.3H5.3Zm0 4.1v1.3h1.4V8.4H5.3Z',
  up: 'M6 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z',
} as const

export type Shape = keyof typeof SHAPES

export function Silhouette({ of, class: more = '' }: { of: Shape; class?: string }) {
  return (
    <svg class={`st ${more}`} viewBox="0 0 12 12" aria-hidden="true" focusable="false">
      <path fill-rule="evenodd" d={SHAPES[of]} {...(of === 'processing' && { transform: 'rotate(180 6 6)' })} />
    </svg>
  )
}

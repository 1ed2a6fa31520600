/** An answer, or what there is to say while there is none. */
import type { ComponentChildren } from 'preact'
import type { Load } from '../load.js'
import { Failed } from './failed.js'
import { SkeletonRows } from './skeleton.js'

interface Props<T> {
  of: Load<T>
  /** What is in its place until it is there: the same size. */
  waiting?: ComponentChildren
  children(value: T): ComponentChildren
}

export function Loaded<T>({ of, waiting, children }: Props<T>) {
  const value = of.value.value
  const failure = of.failure.value
  if (value === undefined && failure) return <Failed failure={failure} onRetry={of.reload} />
  if (value === undefined) {
    return (
      <div role="status" aria-busy="true">
        {of.slow.value && <span class="vh">Loading…</span>}
        <div class={of.slow.value ? '' : 'sk-wait'}>{waiting ?? <SkeletonRows />}</div>
      </div>
    )
  }
  return (
    <>
      {failure && <Failed failure={failure} onRetry={of.reload} small />}
      {children(value)}
    </>
  )
}

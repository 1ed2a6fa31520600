/** Where something will be, in its final size. It appears after 200 ms: see load.ts. */
export function SkeletonRows({ rows = 8, shown = true }: { rows?: number; shown?: boolean }) {
  return (
    <div aria-hidden="true" class={shown ? '' : 'sk-wait'}>
      {Array.from({ length: rows }, (_, n) => (
        <div class="sk-row" key={n}>
          <span class="sk sk-d" />
          <span class="sk sk-b" />
          <span class="sk sk-c" />
          <span class="sk sk-b" />
          <span class="sk sk-d" />
        </div>
      ))}
    </div>
  )
}

export function SkeletonBlock({ shown = true, class: more = '' }: { shown?: boolean; class?: string }) {
  return (
    <div aria-hidden="true" class={`sk-block ${shown ? '' : 'sk-wait'} ${more}`}>
      <span class="sk sk-a" />
      <span class="sk sk-b" />
      <span class="sk sk-c" />
    </div>
  )
}

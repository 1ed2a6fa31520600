/** A panel: a surface with a title. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface Props {
  title: string
  sub?: ComponentChildren
  end?: ComponentChildren
  children: ComponentChildren
  class?: string
}

export function Panel({ title, sub, end, children, class: more = '' }: Props) {
  const id = useId()
  return (
    <section class={`panel ${more}`} aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {sub !== undefined && <span class="sub">{sub}</span>}
        {end !== undefined && <span class="end sub">{end}</span>}
      </div>
      {children}
    </section>
  )
}

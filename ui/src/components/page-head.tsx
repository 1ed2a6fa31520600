/** Every page begins with a sentence, not with a title. */
import type { ComponentChildren } from 'preact'

interface Props {
  title: ComponentChildren
  children?: ComponentChildren
  /** Buttons, on the right. */
  end?: ComponentChildren
}

export function PageHead({ title, children, end }: Props) {
  return (
    <div class="page-head">
      <div>
        <h1>{title}</h1>
        {children !== undefined && <p>{children}</p>}
      </div>
      {end !== undefined && <div class="btns">{end}</div>}
    </div>
  )
}

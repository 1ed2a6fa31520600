/** Pages and dialogs whose code comes later. It is a moment, so nothing is shown before; if it does not come, that is said. */
import type { ComponentType, VNode } from 'preact'
import { signal } from '@preact/signals'
import { Button } from './button.js'
import { Empty } from './empty.js'

interface Later<M> {
  load(): void
  page(name: keyof M): ComponentType
}

export function later<M extends Record<keyof M, ComponentType>>(
  bring: () => Promise<M>,
  waiting: VNode | null = <div class="to-come" role="status" aria-busy="true" />,
): Later<M> {
  const module = signal<M | undefined>(undefined)
  const missing = signal(false)
  let begun = false
  const load = (): void => {
    if (begun) return
    begun = true
    bring().then(
      (brought) => (module.value = brought),
      () => (missing.value = true),
    )
  }
  return {
    load,
    page: (name) =>
      function LaterPage() {
        load()
        const Page: ComponentType | undefined = module.value?.[name]
        if (Page) return <Page />
        return missing.value ? <Missing /> : waiting
      },
  }
}

function Missing() {
  return (
    <div class="panel">
      <Empty
        icon="plug"
        level={1}
        title="This page could not be loaded"
        actions={<Button onClick={() => location.reload()}>Load again</Button>}
      >
        The dashboard may have been updated since this tab was opened.
      </Empty>
    </div>
  )
}

/** The box that is open; of several, a choice. The page stays the same one. */
import { box, go, href, place } from '../router.js'
import { session } from '../session.js'

export function BoxSwitch({ class: more = '' }: { class?: string }) {
  const boxes = session.value?.boxes ?? []
  if (boxes.length < 2) return <b class={`clip ${more}`}>{box.value || '…'}</b>
  const page = place.value?.page ?? 'overview'
  return (
    <select
      class={`box-switch ${more}`}
      aria-label="Box"
      value={box.value}
      onChange={(event) => go(href(page === 'message' ? 'messages' : page, {}, event.currentTarget.value))}
    >
      {boxes.map(({ name }) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}

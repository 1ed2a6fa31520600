/** The page is about one consumer alone, which its address names; the reader may look at all of them. */
import { visible } from '../logic/visible.js'
import { query, setQuery } from '../router.js'
import { Icon } from './icon.js'
import { Shown } from './shown.js'

/** The consumer that a link has asked for. */
export function onlyOf(): string | undefined {
  return query.value['consumer'] || undefined
}

export function OnlyOf() {
  const consumer = onlyOf()
  if (consumer === undefined) return null
  return (
    <p class="only-of">
      <span class="chip">
        <span class="q">consumer:</span>
        <span class="v" title={visible(consumer)}>
          <Shown text={consumer} />
        </span>
        <button
          type="button"
          aria-label={`Show all consumers, not ${visible(consumer)} alone`}
          onClick={() => setQuery({ consumer: undefined })}
        >
          <Icon name="x" />
        </button>
      </span>
    </p>
  )
}

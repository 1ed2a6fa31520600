/** A part of the query, which can be dropped. */
import { unquote, type Piece } from '../../logic/query.js'
import { visible } from '../../logic/visible.js'
import { Icon } from '../icon.js'
import { Shown } from '../shown.js'

export function Chip({ piece: { qualifier = 'id', value }, onRemove }: { piece: Piece; onRemove(): void }) {
  const text = value.includes(',') ? value : unquote(value)
  return (
    <span class="chip">
      <span class="q">{`${qualifier}:`}</span>
      <span class="v" title={visible(text)}>
        <Shown text={text} />
      </span>
      <button type="button" aria-label={`Remove ${qualifier} ${visible(text)}`} onClick={onRemove}>
        <Icon name="x" />
      </button>
    </span>
  )
}

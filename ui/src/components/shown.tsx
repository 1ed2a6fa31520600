/** A text that came with a message. What would be hidden in it, or would turn the rest around, is shown as a mark. */
import { partsOf } from '../logic/visible.js'

/** More would be as many elements: the rest is one text. */
const MOST_PARTS = 500

export function Shown({ text, most = MOST_PARTS }: { text: string; most?: number }) {
  const parts = partsOf(text)
  if (parts.length === 1 && parts[0]!.kind === 'text') return <bdi>{text}</bdi>
  const rest = parts.slice(most)
  return (
    <bdi>
      {parts.slice(0, most).map((part, n) =>
        part.kind === 'text' ? (
          part.text
        ) : (
          <span class="mk" title={part.words} key={n}>
            {part.text}
          </span>
        ),
      )}
      {rest.length > 0 && rest.map((part) => (part.kind === 'text' ? part.text : `[${part.text}]`)).join('')}
    </bdi>
  )
}

/** A text that came with a message. What would be hidden in it, or would turn the rest around, is shown as a mark. */
import { partsOf, visible } from '../logic/visible.js'

/** More would be as many elements: the rest is one text. */
const MOST_MARKS = 500

export function Shown({ text }: { text: string }) {
  const parts = partsOf(text)
  if (parts.length === 1 && parts[0]!.kind === 'text') return <bdi>{text}</bdi>
  const rest = parts.slice(MOST_MARKS)
  return (
    <bdi>
      {parts.slice(0, MOST_MARKS).map((part, n) =>
        part.kind === 'text' ? (
          part.text
        ) : (
          <span class="mk" title={part.words} key={n}>
            {part.text}
          </span>
        ),
      )}
      {rest.length > 0 && visible(rest.map((part) => (part.kind === 'text' ? part.text : `[${part.text}]`)).join(''))}
    </bdi>
  )
}

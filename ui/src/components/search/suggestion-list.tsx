/** What may come next: qualifiers first, then values with their counts. */
import type { Option } from '../../logic/suggest.js'
import { visible } from '../../logic/visible.js'

interface Props {
  id: string
  isOpen: boolean
  head: string
  options: readonly Option[]
  active: number
  /** What is wrong with the draft. */
  told: string | undefined
  onTake(option: Option): void
}

export function SuggestionList({ id, isOpen, head, options, active, told, onTake }: Props) {
  return (
    <div class="suggest" hidden={!isOpen}>
      {told !== undefined && (
        <p class="suggest-told f-dead" id={`${id}told`} role="alert">
          {visible(told)}
        </p>
      )}
      <p class="suggest-head" id={`${id}head`}>
        {visible(head)}
      </p>
      <ul role="listbox" id={`${id}list`} aria-labelledby={`${id}head`}>
        {options.map((option, n) => (
          <li
            class="opt"
            role="option"
            id={`${id}o${n}`}
            aria-selected={n === active}
            key={option.code}
            // The input keeps the focus: it would be lost before the click.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onTake(option)}
          >
            <code class="clip">{visible(option.code)}</code>
            <span class="clip">{visible(option.words)}</span>
            <span class="c">{option.count ?? ''}</span>
          </li>
        ))}
      </ul>
      <p class="suggest-foot" aria-hidden="true">
        <span>
          <span class="kbd">↑</span>
          <span class="kbd">↓</span> choose
        </span>
        <span>
          <span class="kbd">Tab</span> complete
        </span>
        <span>
          <span class="kbd">Enter</span> search
        </span>
        <span>
          <code>,</code> any of
        </span>
        <span>a space means and</span>
      </p>
    </div>
  )
}

/** Why somebody acts, in their own words: it goes into the audit log beside their name. */
import { useId } from 'preact/hooks'

/** The server takes no more. */
const MOST = 2_000

interface Props {
  value: string
  required?: boolean
  onInput(value: string): void
  onEnter?(): void
}

export function Why({ value, required = false, onInput, onEnter }: Props) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>
        Why <span class="faint">{required ? '(required, for the audit log)' : '(for the audit log)'}</span>
      </label>
      <input
        class="input"
        id={id}
        type="text"
        maxLength={MOST}
        required={required}
        autocomplete="off"
        value={value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
        onKeyDown={({ key }) => {
          if (key === 'Enter') onEnter?.()
        }}
      />
    </div>
  )
}

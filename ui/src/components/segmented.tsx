/** One choice of a few, all of them visible. */
interface Props<T extends string | number> {
  label: string
  choices: readonly { readonly value: T; readonly text: string }[]
  value: T
  onChoose(value: T): void
}

export function Segmented<T extends string | number>({ label, choices, value, onChoose }: Props<T>) {
  return (
    <div class="seg" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
        >
          {choice.text}
        </button>
      ))}
    </div>
  )
}

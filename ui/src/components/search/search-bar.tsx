/**
 * The search bar: terms that count are chips, what is being typed is the draft. A combobox with a listbox: arrows choose, Tab
 * completes, Enter searches, Backspace takes the last chip back.
 */
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Vocabulary } from '../../api.js'
import { addTo, piecesOf, textOf, unknownIn, without } from '../../logic/query.js'
import { suggest, type CountOf, type Option } from '../../logic/suggest.js'
import { searchWanted, takeTyped } from '../../search-focus.js'
import { Icon } from '../icon.js'
import { Chip } from './chip.js'
import { SuggestionList } from './suggestion-list.js'

interface Props {
  q: string
  vocabulary: Vocabulary | undefined
  countOf: CountOf
  onSearch(q: string): void
}

const NOTHING: Vocabulary = { qualifiers: [], states: [], reasons: [], consumers: [], types: [], sinks: [] }

export function SearchBar({ q, vocabulary, countOf, onSearch }: Props) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const draft = useSignal('')
  const open = useSignal(false)
  const active = useSignal(-1)
  const refused = useSignal<string | undefined>(undefined)
  const known = vocabulary ?? NOTHING
  const { head, options, problem } = vocabulary
    ? suggest(draft.value, known, countOf)
    : { head: '', options: [], problem: undefined }

  const type = (text: string): void => {
    draft.value = text
    active.value = -1
    refused.value = undefined
    open.value = true
  }
  const run = (text: string): void => {
    const names = known.qualifiers.map(({ name }) => name)
    const unknown = vocabulary && unknownIn(text, names)
    if (unknown) {
      refused.value = `There is no ‘${unknown.name}:’.${unknown.near === undefined ? ' An id with a colon goes in quotes.' : ''}`
      open.value = true
      active.value = unknown.near === undefined ? -1 : 0
      return
    }
    draft.value = ''
    open.value = false
    active.value = -1
    onSearch(addTo(q, text))
  }
  // Before the next key is pressed: it would be a shortcut.
  useLayoutEffect(() => {
    if (!searchWanted.value) return
    searchWanted.value = false
    input.current?.focus()
    const { text, entered } = takeTyped()
    if (entered) run(text)
    else if (text !== '') type(text)
  }, [searchWanted.value])
  const take = ({ draft: text, isWhole }: Option): void => {
    if (isWhole) run(text)
    else type(text)
    input.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const chosen = open.value ? options[active.value] : undefined
    const move = (by: number): void => {
      event.preventDefault()
      open.value = true
      const count = options.length
      if (count > 0)
        active.value = active.value === -1 ? (by === 1 ? 0 : count - 1) : (active.value + by + count) % count
    }
    switch (event.key) {
      case 'ArrowDown':
        return move(1)
      case 'ArrowUp':
        return move(-1)
      case 'Tab':
        if (event.shiftKey || !open.value || draft.value === '' || options.length === 0) return
        event.preventDefault()
        return take(chosen ?? options[0]!)
      case 'Enter':
        event.preventDefault()
        return chosen ? take(chosen) : run(draft.value)
      case 'Escape':
        event.preventDefault()
        if (open.value) open.value = false
        else if (draft.value === '') input.current?.blur()
        else draft.value = ''
        return
      case 'Backspace': {
        const last = piecesOf(q).at(-1)
        if (draft.value !== '' || !last) return
        event.preventDefault()
        onSearch(without(q, piecesOf(q).length - 1))
        return type(textOf(last))
      }
    }
  }
  const told = refused.value ?? problem
  const isOpen = open.value && (options.length > 0 || told !== undefined)
  return (
    <form class="search" role="search" aria-label="Messages" onSubmit={(event) => event.preventDefault()}>
      <div class="search-box" onClick={() => input.current?.focus()}>
        <Icon name="search" />
        {piecesOf(q).map((piece, n) => (
          <Chip piece={piece} onRemove={() => onSearch(without(q, n))} key={`${n} ${textOf(piece)}`} />
        ))}
        <input
          ref={input}
          type="text"
          role="combobox"
          aria-expanded={isOpen}
          aria-controls={`${id}list`}
          aria-autocomplete="list"
          aria-label="Search messages"
          {...(isOpen && active.value >= 0 && { 'aria-activedescendant': `${id}o${active.value}` })}
          {...(told !== undefined && { 'aria-invalid': true, 'aria-describedby': `${id}told` })}
          placeholder={q === '' ? 'id, or data.orderId:A-1, error:"timeout", key:…' : ''}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={draft.value}
          onInput={(event) => type(event.currentTarget.value)}
          onFocus={() => (open.value = true)}
          onBlur={() => (open.value = false)}
          onKeyDown={onKeyDown}
        />
        <span class="kbd" aria-hidden="true">
          /
        </span>
      </div>
      <SuggestionList
        id={id}
        isOpen={isOpen}
        head={head}
        options={options}
        active={active.value}
        told={told}
        onTake={take}
      />
    </form>
  )
}

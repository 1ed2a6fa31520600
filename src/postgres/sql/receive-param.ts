/** The parameter of RECEIVE: messages by columns, with their bodies behind. */
import type { LocalConsumer } from '../../local-consumer.js'
import { WithTexts } from '../statement.js'

interface ReceiveInput {
  readonly consumers: readonly LocalConsumer[]
  /** Only these consumers; null for all. */
  readonly only: readonly string[] | null
  /** Leaves out what gets its messages in another way. */
  readonly not: readonly (readonly [consumer: string, type: string])[]
  /** How long to wait for a copy that is being handled on arrival, whose mark is not committed yet. */
  readonly wait: string
}

/** A message that is to be stored. */
export interface MessageRow {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly key?: string | undefined
  readonly body: string
  /** The fingerprint in hex; null if bodies are not to be compared. Undefined: nobody has computed that of the body yet. */
  readonly hash?: string | null | undefined
  readonly envelope?: string | null
  /** The time of the message. */
  readonly at?: string | undefined
  /** What few have: the statement looks for it at one place. */
  readonly rare?: RareParts | undefined
}

export interface RareParts {
  /** Business keys, by consumer. */
  readonly ids: Readonly<Record<string, string>> | undefined
  /** Consumers that cannot take it. */
  readonly unfit: readonly string[] | undefined
  /** The lane, if that is not the key. */
  readonly lane: string | undefined
  /** 'person' if a person has judged its age, or the time since when it has waited in quarantine. */
  readonly force: string | undefined
}

/** Messages by columns, for a thousand of them pay for each name. What no message has is left out. */
interface Columns {
  readonly ids: readonly string[]
  /** The types there are. */
  readonly kinds: readonly string[]
  /** Of all of them, or of each. */
  readonly source: string | undefined
  readonly sources: Column
  readonly type: string | undefined
  readonly types: Column
  readonly keys: Column
  /** Empty: not to be compared. Null: not computed. */
  readonly hashes: Column
  readonly envelopes: Column
  readonly times: Column
  readonly rare: Column<RareParts>
}

type Column<T = string> = readonly (T | null | undefined)[] | undefined

export type ReceiveParam = WithTexts<ReceiveInput & Columns>

export function receiveParam(messages: readonly MessageRow[], input: ReceiveInput): ReceiveParam {
  const [{ source, type }] = messages as [MessageRow]
  const oneSource = messages.every((message) => message.source === source)
  const oneType = messages.every((message) => message.type === type)
  const types = messages.map((message) => message.type)
  const columns: Columns = {
    ids: messages.map(({ id }) => id),
    kinds: oneType ? [type] : [...new Set(types)],
    source: oneSource ? source : undefined,
    sources: oneSource ? undefined : messages.map((message) => message.source),
    type: oneType ? type : undefined,
    types: oneType ? undefined : types,
    keys: column(messages, ({ key }) => key),
    hashes: column(messages, ({ hash }) => (hash === null ? '' : hash)),
    envelopes: column(messages, ({ envelope }) => envelope),
    times: column(messages, ({ at }) => at),
    rare: column(messages, ({ rare }) => rare),
  }
  return new WithTexts(
    { ...input, ...columns },
    messages.map(({ body }) => body),
  )
}

function column<T>(messages: readonly MessageRow[], of: (message: MessageRow) => T | null | undefined): Column<T> {
  return messages.some((message) => (of(message) ?? null) !== null) ? messages.map(of) : undefined
}

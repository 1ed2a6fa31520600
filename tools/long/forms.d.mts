export const FORMS: readonly {
  readonly name: string
  readonly about: string
  readonly variables: Readonly<Record<string, string>>
  readonly files: readonly string[]
}[]

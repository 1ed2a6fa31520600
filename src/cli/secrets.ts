/**
 * Passwords in what people type: a URL gets into the wrong option, and the error that quotes it would be kept in a log of CI.
 * A password may have any characters, so that nothing here relies on a URL that can be parsed.
 */

const SCHEME = String.raw`(?:postgres(?:ql)?:/*|\w+://)`
const LOGIN = new RegExp(
  [
    // `postgres://app:secret@`: up to the last `@` of the line, whatever is between.
    String.raw`(postgres(?:ql)?:/*[^\s:@]*:).*@`,
    // `https://app:secret@`, and `app:secret@` by itself, which is no drive and no `file://`.
    String.raw`(\w+://[^\s:@]*:)\S*@`,
    String.raw`((?<![^\s"'=/])[^\s:@"'/\\]{2,}:)(?!//)\S*@`,
  ].join('|'),
  'gi',
)
/** `?password=secret`, `password = 'secret'` */
const SETTING = /([^\s?&="']+)(\s*=\s*)('[^']*'|[^\s&"']+)/g

/** The text with `***` for each password. */
export function masked(text: string): string {
  return text
    .replace(SETTING, (all: string, name: string, is: string) => (isPassword(name) ? `${name}${is}***` : all))
    .replace(LOGIN, (_, ...[ours, others, alone]: (string | undefined)[]) => `${ours ?? others ?? alone}***@`)
}

/** Does a URL, or settings of libpq, have a password, or what may be one? */
export function hasPassword(url: string): boolean {
  for (const [, name = ''] of url.matchAll(SETTING)) if (isPassword(name)) return true
  const login = url.replace(new RegExp(`^\\s*${SCHEME}`, 'i'), '').match(/^.*@/s)
  return login !== null && login[0].includes(':')
}

function isPassword(name: string): boolean {
  return /^(ssl)?pass(word|phrase)?$/i.test(decoded(name))
}

/**
 * May what a parser makes of a URL be a piece of its password? After a `/`, `?` or `#` in a password, what comes before is
 * taken for host and port, and the rest for the database: then there is an `@` behind the host.
 */
export function mayBeMisread({ pathname, search, hash }: URL): boolean {
  return (pathname + search + hash).includes('@')
}

export function decoded(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? '')
  } catch {
    return text ?? ''
  }
}

/**
 * The page: index.html of the built interface, told where it is. Its files are named relative to a `<base>`, and what it has to
 * know before its first request is in attributes of `<html>`: the policy allows no script in the page.
 */
import { readAsset, type Assets } from './assets.js'

export interface Told {
  readonly base: string
  readonly title: string
  readonly environment: string | undefined
  readonly readOnly: boolean
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title></title></head>
<body><p>The interface is not part of this build. The JSON API is at <a href="api/v1/session">api/v1/session</a>.</p></body>
</html>
`

export async function pageAt(told: Told, assets: Assets = readAsset): Promise<string> {
  const built = await assets('index.html')
  return tell(built ? Buffer.from(built.bytes).toString() : NOT_BUILT, told)
}

export function tell(html: string, { base, title, environment, readOnly }: Told): string {
  const attributes = [
    ['data-base', base],
    ['data-title', title],
    ...(environment === undefined ? [] : [['data-environment', environment]]),
    ...(readOnly ? [['data-read-only', '']] : []),
  ].map(([name, value]) => ` ${name}="${escape(value!)}"`)
  // Functions: in a text, `$&` of a title would stand for something.
  return html
    .replace(/<html\b/i, (tag) => tag + attributes.join(''))
    .replace(/<head\b[^>]*>/i, (tag) => `${tag}<base href="${escape(base)}/">`)
    .replace(/<title>[^<]*<\/title>/i, () => `<title>${escape(title)}</title>`)
}

/** Plain: a visitor who is refused gets no file of the interface. */
export function refusalPage(status: number, words: string): string {
  const said = escape(words)
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status}: ${said}</title></head>
<body><h1>${status}</h1><p>${said}</p></body>
</html>
`
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Words of the server as a sentence of the page: with a capital, and a full stop unless they have an end of their own. */
export function asSentence(words: string): string {
  return `${words[0]?.toUpperCase() ?? ''}${words.slice(1)}${/[.?!]$/.test(words) ? '' : '.'}`
}

/** What a client is answered that gets no response of the handler, in the form of RFC 9457. */
const TITLES = {
  400: 'Idempotency-Key is missing or malformed',
  405: 'This method is not served here',
  408: 'The body did not come in time',
  409: 'A request is outstanding for this Idempotency-Key',
  413: 'The body is too large',
  422: 'This Idempotency-Key was used for another request',
  500: 'The request failed',
  503: 'The request cannot be served now',
} as const

export interface ProblemOptions {
  readonly detail?: string
  readonly headers?: Readonly<Record<string, string>>
}

export function problem(status: keyof typeof TITLES, { detail, headers = {} }: ProblemOptions = {}): Response {
  const body = JSON.stringify({ title: TITLES[status], status, ...(detail !== undefined && { detail }) })
  return new Response(body, {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
  })
}

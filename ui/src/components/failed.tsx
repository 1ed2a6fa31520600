/** What went wrong, what was tried, what next. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { DashboardError } from '../api.js'
import { asSentence } from '../logic/as-sentence.js'
import { duration } from '../logic/format.js'
import type { Failure } from '../load.js'
import { Banner } from './banner.js'
import { Button } from './button.js'
import { Empty } from './empty.js'
import { ReloadButton } from './reload-button.js'

interface Props {
  failure: Failure
  onRetry(): void
  /** There is an older answer below. */
  small?: boolean
}

export function Failed({ failure, onRetry, small = false }: Props) {
  const left = useCountdown(failure.nextAt)
  const tried = failure.tries > 1 ? ` Tried ${failure.tries} times in ${duration(Date.now() - failure.firstAt)}.` : ''
  const next = left === undefined ? '' : ` Next try in ${left} s.`
  const again = isSignedOut(failure.error) ? (
    <ReloadButton small={small} />
  ) : (
    <Button small={small} onClick={onRetry}>
      Try again
    </Button>
  )
  const text = `${wordsOf(failure.error)}${tried}${next}`
  if (small)
    return (
      <Banner tone="bad" icon="plug" end={again}>
        <b>{titleOf(failure.error)}.</b> {text} What you see is from before.
      </Banner>
    )
  return (
    <Empty icon="plug" title={titleOf(failure.error)} actions={again}>
      {text}
    </Empty>
  )
}

const TITLES: Readonly<Partial<Record<string, string>>> = {
  DATABASE_AWAY: 'The database does not answer',
  BUSY: 'The dashboard is busy',
  TOO_FAST: 'Too many searches at once',
  TIMEOUT: 'It took too long',
  UNAUTHENTICATED: 'You are not signed in',
  FORBIDDEN: 'You may not see this',
  NOT_FOUND: 'It is not there',
  QUERY_INVALID: 'The search cannot be read',
}

export function isSignedOut(error: unknown): boolean {
  return error instanceof DashboardError && error.code === 'UNAUTHENTICATED'
}

export function titleOf(error: unknown): string {
  if (!(error instanceof DashboardError)) return 'The dashboard does not answer'
  return TITLES[error.code] ?? 'That did not work'
}

export function wordsOf(error: unknown): string {
  if (!(error instanceof DashboardError)) return 'The server of this page cannot be reached.'
  return asSentence(error.message)
}

function useCountdown(until: number | undefined): number | undefined {
  const left = useSignal(0)
  useEffect(() => {
    if (until === undefined) return
    const count = (): void => void (left.value = Math.max(0, Math.round((until - Date.now()) / 1000)))
    count()
    const timer = setInterval(count, 1000)
    return () => clearInterval(timer)
  }, [until])
  return until === undefined ? undefined : left.value
}

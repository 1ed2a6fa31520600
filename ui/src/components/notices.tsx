/** What a reader has to know before they believe what they see. */
import { asSentence } from '../logic/as-sentence.js'
import { clockTime } from '../logic/when.js'
import { heardAt, link, problem, togglePaused } from '../live.js'
import { clock } from '../now.js'
import { looksOnly, looksWords } from '../session.js'
import { Banner } from './banner.js'
import { Button } from './button.js'
import { ReloadButton } from './reload-button.js'

export function Notices() {
  const at = heardAt.value === undefined ? undefined : clockTime(heardAt.value, clock.value)
  const state = link.value
  const signedOut = problem.value?.code === 'UNAUTHENTICATED'
  return (
    <>
      {state === 'paused' && (
        <Banner
          tone="warn"
          icon="pause"
          end={
            <Button small onClick={togglePaused}>
              Resume
            </Button>
          }
        >
          <b>Paused{at && ` at ${at}`}.</b> Nothing here moves until you resume.
        </Banner>
      )}
      {state === 'polling' && (
        <Banner tone="warn" icon="plug">
          <b>The live stream is lost.</b> The box is asked every 5 s instead.
        </Banner>
      )}
      {state === 'lost' && problem.value === undefined && (
        <Banner tone="bad" icon="plug">
          <b>No connection{at && ` since ${at}`}.</b> {at ? 'What you see is from then.' : 'It is tried every 5 s.'}
        </Banner>
      )}
      {problem.value && (
        <Banner tone="bad" icon="plug" end={signedOut && <ReloadButton small />}>
          <b>{signedOut ? 'You are not signed in any more.' : 'The box cannot be read.'}</b>{' '}
          {!signedOut && asSentence(problem.value.message)} {at && `What you see is from ${at}.`}
        </Banner>
      )}
      {looksOnly() && (
        <Banner tone="calm" icon="lock">
          <b>Read-only.</b> {looksWords()}
        </Banner>
      )}
    </>
  )
}

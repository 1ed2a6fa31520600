/** "payment.received from bank": what it is and who sent it, if they said. */
import { Shown } from './shown.js'

export function TypeFrom({ type, source }: { type: string; source: string }) {
  return (
    <>
      <Shown text={type} />
      {source !== '' && (
        <>
          {' from '}
          <Shown text={source} />
        </>
      )}
    </>
  )
}

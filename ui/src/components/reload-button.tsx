/** Loads the page anew, at the same address: whoever is signed out gets to where one signs in. */
import { Button } from './button.js'

export function ReloadButton({ small = false }: { small?: boolean }) {
  return (
    <Button small={small} onClick={() => location.reload()}>
      Sign in again
    </Button>
  )
}

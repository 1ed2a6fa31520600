/** Every shortcut that works where the reader is. */
import { helpOpen, shortcuts } from '../keyboard.js'
import { shortcutsOn } from '../preferences.js'
import { Button } from './button.js'
import { Dialog } from './dialog.js'
import { Kbd } from './kbd.js'

export function HelpDialog() {
  // A page's own stand for the shell's.
  const known = new Map(shortcuts.value.flat().map((one) => [one.keys, one]))
  const on = shortcutsOn.value === 'on'
  return (
    <Dialog title="Keyboard" onClose={() => (helpOpen.value = false)}>
      <dl class="keys-list">
        {[...known.values()].map(({ keys, does }) => (
          <div key={keys}>
            <dt>{does}</dt>
            <dd>
              <Kbd keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
      <div class="btns">
        <Button small pressed={!on} onClick={() => (shortcutsOn.value = on ? 'off' : 'on')}>
          {on ? 'Switch shortcuts off' : 'Switch shortcuts on'}
        </Button>
      </div>
    </Dialog>
  )
}

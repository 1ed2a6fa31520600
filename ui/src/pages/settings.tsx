/** Settings: how this browser shows the dashboard. Nothing of it leaves the browser. */
import type { ComponentChildren } from 'preact'
import type { Signal } from '@preact/signals'
import { Button } from '../components/button.js'
import { Kbd } from '../components/kbd.js'
import { PageHead } from '../components/page-head.js'
import { Panel } from '../components/panel.js'
import { Segmented } from '../components/segmented.js'
import { Time } from '../components/time.js'
import { helpOpen } from '../keyboard.js'
import { now } from '../now.js'
import { liveAtStart, shortcutsOn, theme, timeZone } from '../preferences.js'
import { session } from '../session.js'

export function SettingsPage() {
  const at = session.value
  return (
    <>
      <PageHead title="As you like it">Kept in this browser, for all boxes. Others see what they have chosen.</PageHead>
      <Panel title="Look">
        <Choice
          of={theme}
          label="Theme"
          choices={[
            ['system', 'As the system'],
            ['light', 'Light'],
            ['dark', 'Dark'],
          ]}
        >
          Both are chosen, none is inverted.{' '}
          <span class="key-hint">
            <Kbd keys="t" /> changes it anywhere.
          </span>
        </Choice>
        <Choice
          of={timeZone}
          label="Times"
          choices={[
            ['local', 'Local'],
            ['utc', 'UTC'],
          ]}
        >
          Now it is <Time at={new Date(now.value).toISOString()} /> (
          {timeZone.value === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone}). Searches are read so
          too. UTC is shown on hover either way.
        </Choice>
      </Panel>
      <Panel title="Behaviour">
        <Choice
          of={liveAtStart}
          label="Refresh"
          choices={[
            ['on', 'Live'],
            ['off', 'Paused at first'],
          ]}
        >
          Live: figures follow the box once a second.{' '}
          <span class="key-hint">
            <Kbd keys="p" /> pauses and resumes them.
          </span>
        </Choice>
        <Choice
          of={shortcutsOn}
          label="Shortcuts"
          choices={[
            ['on', 'On'],
            ['off', 'Off'],
          ]}
        >
          Keys of one letter. Switch them off if they get in the way of how you type or speak.
        </Choice>
        <div class="setting">
          <span class="setting-what">
            <b>Keyboard</b>
            <span class="hint">Every shortcut that works where you are.</span>
          </span>
          <Button icon="key" onClick={() => (helpOpen.value = true)}>
            Show shortcuts
          </Button>
        </div>
      </Panel>
      {at && (
        <Panel title="You" sub="as the server knows you">
          <dl class="facts">
            <dt>Name</dt>
            <dd>{at.user ?? 'not known'}</dd>
            <dt>May</dt>
            <dd>{at.readOnly ? 'read: this dashboard is read-only' : at.may.join(', ')}</dd>
            <dt>Boxes</dt>
            <dd>{at.boxes.map(({ name }) => name).join(', ')}</dd>
          </dl>
        </Panel>
      )}
    </>
  )
}

interface Props<T extends string> {
  of: Signal<T>
  label: string
  choices: readonly (readonly [T, string])[]
  children: ComponentChildren
}

function Choice<T extends string>({ of, label, choices, children }: Props<T>) {
  return (
    <div class="setting">
      <span class="setting-what">
        <b>{label}</b>
        <span class="hint">{children}</span>
      </span>
      <Segmented<T>
        label={label}
        value={of.value}
        choices={choices.map(([value, text]) => ({ value, text }))}
        onChoose={(value) => (of.value = value)}
      />
    </div>
  )
}

/** Health: the database, the brokers, and what is wrong with them in the box's own words. */
import type { Overview } from '../api.js'
import { Panel } from '../components/panel.js'
import { Silhouette } from '../components/silhouette.js'
import { href } from '../router.js'

export function Health({ overview: { health, server } }: { overview: Overview }) {
  const version = /^[\d.]+/.exec(server.version)?.[0] ?? server.version
  return (
    <Panel
      title="Health"
      end={
        <a class="link" href={href('doctor')}>
          Ask the doctor →
        </a>
      }
    >
      <ul class="health">
        <Part ok={health.database} name="Database">
          {health.database ? `PostgreSQL ${version} answers in ${server.ms} ms` : 'does not answer'}
        </Part>
        <Part ok={health.sources} name="Brokers">
          {health.sources ? 'every source of this process is connected' : 'a source is not connected'}
        </Part>
        <Part ok={health.ok} name="This process">
          {health.ok ? 'ready' : health.reasons.join('; ') || 'not ready'}
        </Part>
      </ul>
    </Panel>
  )
}

function Part({ ok, name, children }: { ok: boolean; name: string; children: string }) {
  return (
    <li>
      <span class={`with-st ${ok ? 'f-handled' : 'f-dead'}`}>
        <Silhouette of={ok ? 'up' : 'behind'} />
        <b>{name}</b>
      </span>
      <span class="mut">{children}</span>
    </li>
  )
}

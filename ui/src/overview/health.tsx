/** Health: the database, the brokers, and what is wrong with them in the box's own words. */
import type { Overview } from '../api.js'
import { Panel } from '../components/panel.js'
import { Silhouette } from '../components/silhouette.js'
import { brokersOf, DOWN, UP, type Known } from '../logic/health-words.js'
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
        <Part
          {...(health.database ? UP : DOWN)}
          name="Database"
          words={health.database ? `PostgreSQL ${version} answers in ${server.ms} ms` : 'does not answer'}
        />
        <Part {...brokersOf(health)} name="Brokers" />
        <Part
          {...(health.ok ? UP : DOWN)}
          name="This process"
          words={health.ok ? 'ready' : health.reasons.join('; ') || 'not ready'}
        />
      </ul>
    </Panel>
  )
}

function Part({ tone, shape, name, words }: Known & { name: string }) {
  return (
    <li>
      <span class={`with-st f-${tone}`}>
        <Silhouette of={shape} />
        <b>{name}</b>
      </span>
      <span class="mut">{words}</span>
    </li>
  )
}

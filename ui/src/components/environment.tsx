/** The badge of the environment. Production is loud, the others are quiet. */
import { session } from '../session.js'
import { told } from '../told.js'

export function Environment({ class: more = '' }: { class?: string }) {
  const name = session.value?.environment ?? told.environment
  if (name === undefined) return <span class={more} hidden />
  return <span class={`env ${/^prod/i.test(name) ? '' : 'env-soft'} ${more}`}>{name}</span>
}

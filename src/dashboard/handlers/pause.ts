/** Pauses and resumes a consumer, signed by who asks. */
import { pause as pauseConsumer, resume as resumeConsumer, type Registry } from '../../admin/pause.js'
import type { Signed } from '../../admin/types.js'
import type { Done } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import type { RouteInput } from '../routes.js'

const DONE: Done = { done: true }

export async function pause(call: BoxCall, { consumer, reason }: RouteInput<'pause'>): Promise<Done> {
  await pauseConsumer(call.part.stage.runtime, registryOf(call), consumer, signed(call, reason))
  return DONE
}

export async function resume(call: BoxCall, { consumer, reason }: RouteInput<'resume'>): Promise<Done> {
  const { stage } = call.part
  await resumeConsumer(stage.runtime, registryOf(call), consumer, signed(call, reason))
  stage.wake()
  return DONE
}

function registryOf({ part: { stage } }: BoxCall): Registry {
  return { local: stage.consumers().map(({ name }) => name), announce: () => stage.announce() }
}

export function signed({ access }: BoxCall, reason: string | undefined): Signed {
  return { ...(access.by !== undefined && { by: access.by }), ...(reason !== undefined && { reason }) }
}

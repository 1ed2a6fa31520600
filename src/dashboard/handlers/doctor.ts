/** The doctor’s findings. */
import type { Doctor } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import type { RouteInput } from '../routes.js'

export function doctor({ part }: BoxCall, { patience }: RouteInput<'doctor'>): Promise<Doctor> {
  return part.diagnosis(patience)
}

/** The doctor’s findings. */
import type { Doctor } from '../answers/index.js'
import type { BoxCall } from '../desk.js'

export function doctor({ part }: BoxCall): Promise<Doctor> {
  return part.diagnosis()
}

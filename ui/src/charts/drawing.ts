/** What a chart is told to draw. */
import type { Values } from '../logic/lines.js'

export interface Line {
  readonly values: Values
  /** A token: `lag` is --c-lag. */
  readonly colour: string
  readonly dashed?: boolean
  /** How strong the area below is; none if absent. */
  readonly area?: number
}

export interface Drawing {
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  /** Above it, the line is another colour, and there is a dotted one. */
  readonly limit?: number
  readonly unit: 'span' | 'number'
  write(value: number): string
  readonly labels: number
  /** The axis goes up to this at least. */
  readonly least: number
}

export interface Plot {
  update(drawing: Drawing): void
  /** Colours have changed. */
  redraw(): void
  resize(): void
  end(): void
}

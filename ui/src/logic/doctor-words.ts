/** What the page of the doctor says. */
import type { Doctor } from '../../../src/dashboard/answers/index.js'
import { count, plural } from './format.js'

export type Severity = Doctor['findings'][number]['severity']

const ORDER: readonly Severity[] = ['serious', 'warning', 'note']
export const SEVERITY_WORDS: Readonly<Record<Severity, string>> = {
  serious: 'Serious',
  warning: 'Warning',
  note: 'Note',
}

/** The worst first. */
export function worstFirst(findings: Doctor['findings']): Doctor['findings'] {
  return [...findings].sort((one, other) => ORDER.indexOf(one.severity) - ORDER.indexOf(other.severity))
}

/** 1 serious finding, 2 warnings */
export function doctorTitle(findings: Doctor['findings'], looking: boolean): string {
  const of = (severity: Severity): number => findings.filter((one) => one.severity === severity).length
  const [serious, warnings, notes] = ORDER.map(of) as [number, number, number]
  const parts = [
    ...(serious > 0 ? [plural(serious, 'serious finding')] : []),
    ...(warnings > 0 ? [plural(warnings, 'warning')] : []),
    ...(notes > 0 ? [plural(notes, 'note')] : []),
  ]
  const none = looking ? 'The doctor looks' : 'The doctor finds nothing'
  return parts.length === 0 ? none : parts.join(', ')
}

/** A figure as people read it: whole numbers in groups of three. */
export function figureWords(value: number | string): string {
  if (typeof value === 'string') return value
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? count(value) : String(value)
}

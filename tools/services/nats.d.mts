import type { Service } from './process.mjs'

export const name: string
export const variable: string
export function start(): Promise<Service>

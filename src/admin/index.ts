import type { MessageMap } from '../message.js'
export interface Admin<M extends MessageMap> { x?: M }
export type Filter<M> = M
export type Criteria<M> = M
export type Bulk = object
export function createAdmin<M extends MessageMap>(_r: unknown, _d: unknown): Admin<M> { return {} }

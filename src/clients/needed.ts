/** Bindings reach for members that are no part of a client's promise: what is gone in a new version is said in words. */
import { invalid } from '../options.js'

/** The member, or an error that names it and the versions that are known to have it. */
export function needed<T>(value: T | null | undefined, member: string, [name, versions]: readonly [string, string]): T {
  if (value !== undefined && value !== null) return value
  throw invalid(
    `this version of ${name} has no ${member}, which oncebox needs to lend its transactions: use ${name} ${versions}`,
  )
}

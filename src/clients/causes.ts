/** ORMs make errors of their own of what the client underneath said, and some lose it on the way. */
import { causes } from '../failure.js'

/** The same error, with the client's own as the `cause` of the one that was made of it. */
export function withCauses(
  error: unknown,
  failures: readonly unknown[],
  isOf: (wrapper: Error, failure: unknown) => boolean,
): unknown {
  for (const wrapper of causes(error)) {
    if (!(wrapper instanceof Error) || wrapper.cause !== undefined || failures.includes(wrapper)) continue
    const value = failures.findLast((failure) => isOf(wrapper, failure))
    if (value === undefined || !Object.isExtensible(wrapper)) continue
    Object.defineProperty(wrapper, 'cause', { value, writable: true, configurable: true })
  }
  return error
}

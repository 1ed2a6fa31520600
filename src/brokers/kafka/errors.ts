/**
 * What an error of the client means. Both clients carry the protocol's number of it, kafkajs below wrappers; what librdkafka
 * finds out by itself has a negative one.
 */

/** The message, or the batch it is in, will never be taken as it is. */
const MESSAGE_REFUSED = [
  10, // MESSAGE_TOO_LARGE
  18, // RECORD_LIST_TOO_LARGE
  32, // INVALID_TIMESTAMP
  87, // INVALID_RECORD
]
/** The topic does not take it. Somebody may create it, or allow it. */
const TOPIC_REFUSED = [
  3, // UNKNOWN_TOPIC_OR_PARTITION
  17, // INVALID_TOPIC_EXCEPTION
  29, // TOPIC_AUTHORIZATION_FAILED
  44, // POLICY_VIOLATION
  -188, // librdkafka: unknown topic
  -190, // librdkafka: unknown partition
]
/** The group has moved on, and wants its members to join again. */
const GROUP_MOVED_ON = [
  16, // NOT_COORDINATOR
  22, // ILLEGAL_GENERATION
  25, // UNKNOWN_MEMBER_ID
  27, // REBALANCE_IN_PROGRESS
]

export function refusalOf(error: unknown): 'message' | 'topic' | undefined {
  const codes = codesOf(error)
  if (codes.some((code) => MESSAGE_REFUSED.includes(code))) return 'message'
  return codes.some((code) => TOPIC_REFUSED.includes(code)) ? 'topic' : undefined
}

export function hasGroupMovedOn(error: unknown): boolean {
  return codesOf(error).some((code) => GROUP_MOVED_ON.includes(code))
}

/** kafkajs would have tried again, if it were allowed to: a partition has moved, or a connection was closed. */
export function isPassing(error: unknown): boolean {
  return (error as { name?: unknown } | undefined)?.name === 'KafkaJSNumberOfRetriesExceeded'
}

function codesOf(error: unknown): number[] {
  const codes: number[] = []
  let one = error as { code?: unknown; cause?: unknown } | undefined
  for (let depth = 0; depth < 5 && typeof one === 'object' && one !== null; depth++) {
    if (typeof one.code === 'number') codes.push(one.code)
    one = one.cause as typeof one
  }
  return codes
}

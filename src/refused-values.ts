/**
 * What the server says of a value that it refuses, without the value.
 *
 * It quotes the value in the language of `lc_messages`, each with marks of its own, some with none. So nothing is cut out
 * of a sentence: either it is one that is known, and what is known of it stays, or the name of its condition stands for it.
 */

/** Sentences of which the groups are kept. They also match what is kept, so that it may be read twice. */
const SENTENCES = [
  /^(invalid input syntax for type [^:"]+)(?:: ".*)?$/s,
  /^(invalid input value for enum (?:[\w.]+|"[^":]+"))(?:: ".*)?$/s,
  /^(malformed (?:array|record|range|multirange) literal)(?:: ".*)?$/s,
  /^((?:date\/time|interval|date|time) field value out of range)(?:: .*)?$/s,
  /^(time zone displacement out of range)(?:: ".*)?$/s,
  /^(invalid value for parameter "[\w.]+")(?:: ".*)?$/s,
  /^([a-z ]+ in ts(?:query|vector))(?:: ".*)?$/s,
  /^(value )(?:".*" )?(is out of range for type [a-z0-9 ]+)$/s,
  /^(?:".*"|(value)) (is out of range for type (?:real|double precision))$/s,
  /^(time zone )(?:".*" )?(not recognized)$/s,
  /^((?:[a-z ]+ )?units? )(?:".*" )?(not (?:recognized|supported)(?: for type [a-z ]+)?)$/s,
  /^(invalid byte sequence for encoding "\w+")(?:: .*)?$/s,
  /^(invalid regular expression: [a-z ,(){}[\]]+)$/,
  /^(value too long for type [a-z ]+\(\d+\))$/,
  /^((?:(?:integer|smallint|bigint|money|date|timestamp|interval) out of range|numeric field overflow|division by zero))$/,
  /^(negative substring length not allowed|invalid XML (?:content|document)|value out of range(?:: \w+flow)?)$/,
  /^(array subscript out of range|cannot take (?:square root|logarithm) of (?:a negative number|zero))$/,
]

/** Of those that name no value: the types of PostgreSQL, which no language translates. */
const TYPE =
  /\b(smallint|integer|bigint|numeric|real|double precision|money|boolean|oid|uuid|jsonb?|xml|date|interval|inet|cidr|bytea|tsquery|tsvector|time(?:stamp)? with(?:out)? time zone|character varying\(\d+\)|character\(\d+\))(?!\w)/

/** Appendix A of PostgreSQL's manual. */
const CONDITIONS: Readonly<Record<string, string>> = {
  '22001': 'string_data_right_truncation',
  '22003': 'numeric_value_out_of_range',
  '22004': 'null_value_not_allowed',
  '22007': 'invalid_datetime_format',
  '22008': 'datetime_field_overflow',
  '22009': 'invalid_time_zone_displacement_value',
  '22011': 'substring_error',
  '22012': 'division_by_zero',
  '22015': 'interval_field_overflow',
  '22018': 'invalid_character_value_for_cast',
  '22021': 'character_not_in_repertoire',
  '22023': 'invalid_parameter_value',
  '22025': 'invalid_escape_sequence',
  '22026': 'string_data_length_mismatch',
  '22030': 'duplicate_json_object_key_value',
  '22032': 'invalid_json_text',
  '22033': 'invalid_sql_json_subscript',
  '22038': 'singleton_sql_json_item_required',
  '2201B': 'invalid_regular_expression',
  '2201E': 'invalid_argument_for_logarithm',
  '2201F': 'invalid_argument_for_power_function',
  '2202E': 'array_subscript_error',
  '2200M': 'invalid_xml_document',
  '2200N': 'invalid_xml_content',
  '2203A': 'sql_json_member_not_found',
  '22P01': 'floating_point_exception',
  '22P02': 'invalid_text_representation',
  '22P03': 'invalid_binary_representation',
  '22P04': 'bad_copy_file_format',
  '22P05': 'untranslatable_character',
  '42601': 'syntax_error',
  '54000': 'program_limit_exceeded',
}

/** Two texts: what was said, and what to say in its place. */
export type Replacement = readonly [said: string, plain: string]

/** What this error itself says that may be found in the messages of those who wrap it too. */
export function replacements(error: unknown): Replacement[] {
  const { message, detail } = (error ?? {}) as Record<string, unknown>
  const found: Replacement[] = []
  if (typeof detail === 'string' && detail !== '') found.push([detail, withoutRow(detail)])
  if (typeof message !== 'string' || !quotesValue(error)) return found
  // Knex puts words of its own before the server's; the stack begins with what the error was made with.
  const made = /^\w*: (.+?)(?=\n {4}at |$)/s.exec(stackOf(error as Error) ?? '')?.[1]
  const said = made !== undefined && message.endsWith(made) ? made : message
  found.push([said, plainOf(error, said)])
  return found
}

/** The stack is written when it is first read, and that may fail where the name is no string. */
export function stackOf(error: Error): string | undefined {
  try {
    return typeof error.stack === 'string' ? error.stack : undefined
  } catch {
    return undefined
  }
}

/** May the server's sentence quote a value? What a function of the user's own raises is in its author's words. */
export function quotesValue(error: unknown): boolean {
  const said = (error ?? {}) as Record<string, unknown>
  const { code, message, routine } = said
  if (typeof code !== 'string' || routine === 'exec_stmt_raise') return false
  if (/^22[0-9A-Z]{3}$/.test(code)) return true
  // A statement that cannot be read has a place where that is; a text that a function was to read has none.
  if (code === '42601') return !['position', 'internalPosition', 'internal_position'].some((name) => said[name] != null)
  return code === '54000' && /ts(query|vector)/.test(String(message))
}

function plainOf(error: unknown, sentence: string): string {
  for (const known of SENTENCES) {
    const kept = known.exec(sentence)
    if (kept) return kept.slice(1).join('')
  }
  const { code } = error as { code: string }
  const type = TYPE.exec(sentence.replace(QUOTED, ''))?.[0]
  return `${CONDITIONS[code] ?? 'data_exception'} (${type === undefined ? code : `${code}, ${type}`})`
}

/** From the first mark to the last: what is in between may contain marks. */
const QUOTED = /["«»„“”‹›「『].*["«»„“”‹›」』]/s

/** Details of PostgreSQL that tell the values of a row. What is kept are the groups. */
export const ROWS = [
  /(Key \(.*?\))=\(.*\)( conflicts with (?:existing )?key \(.*?\))=\(.*\)/s,
  /(Key \(.*?\))=\(.*\)( already exists| is not present| is still referenced| is duplicated| conflicts)/s,
  /(Partition key of the failing row contains \(.*?\)) = \(.*\)/s,
  /(Failing row contains) \(.*\)/s,
]

/** Of a detail in another language nothing is known. */
function withoutRow(detail: string): string {
  const known = ROWS.find((row) => row.test(detail))
  return known ? detail.replace(known, keptOf) : ''
}

/** For `replace`: the groups, of which there are one or two. */
export function keptOf(_: string, first: string, second: unknown): string {
  return typeof second === 'string' ? first + second : first
}

/**
 * Qualify: says of each function and operator in a statement that PostgreSQL's own is meant.
 *
 * Statements run in sessions and transactions whose `search_path` belongs to the user. There, whoever may create functions
 * in a schema on the path, such as `public` before PostgreSQL 15, can add one that fits the arguments better than
 * PostgreSQL's own (`unnest(text[])` than `unnest(anyarray)`, `->>(jsonb, jsonb)` for `j->>'id'`), and PostgreSQL takes it,
 * with the rights of the box. Written out the names would bury what the statements say, so they are added here.
 *
 * Comparisons and arithmetic stay as they are, for a qualified operator has another precedence: they must have operands of
 * exactly the types of an operator of PostgreSQL's. test/security/search-path.test.ts asks the server whether all of this
 * holds for every statement.
 */

/** What statements call, besides functions whose names begin with `pg_`. */
const FUNCTIONS = [
  ...[
    'age',
    'array_agg',
    'array_length',
    'array_position',
    'array_to_string',
    'bool_and',
    'bool_or',
    'cardinality',
    'chr',
  ],
  ...[
    'clock_timestamp',
    'concat',
    'concat_ws',
    'convert_from',
    'convert_to',
    'count',
    'current_schemas',
    'current_setting',
    'decode',
    'encode',
  ],
  ...[
    'format',
    'format_type',
    'gen_random_uuid',
    'generate_series',
    'has_function_privilege',
    'has_sequence_privilege',
  ],
  ...[
    'has_table_privilege',
    'hashtextextended',
    'json_build_object',
    'jsonb_agg',
    'jsonb_array_elements',
    'jsonb_array_elements_text',
  ],
  ...['jsonb_array_length', 'jsonb_build_array', 'jsonb_build_object', 'jsonb_each', 'jsonb_each_text'],
  ...['jsonb_object_agg', 'jsonb_object_keys', 'jsonb_strip_nulls', 'jsonb_typeof', 'lag', 'lead', 'left', 'length'],
  ...['lower', 'make_interval', 'max', 'md5', 'min', 'nextval', 'octet_length', 'random', 'replace', 'right'],
  ...[
    'quote_ident',
    'row_number',
    'row_security_active',
    'set_config',
    'setval',
    'sha256',
    'split_part',
    'starts_with',
    'statement_timestamp',
    'string_agg',
    'string_to_array',
  ],
  ...['strpos', 'substr', 'sum', 'to_char', 'to_json', 'to_jsonb', 'to_regclass', 'unnest', 'upper', 'width_bucket'],
]

/** These bind as tightly when they are qualified. */
const OPERATORS = String.raw`(?<!pg_catalog\.)(?:->>|->|\|\||@>|<@)`
/** In a comment, a string or a quoted name nothing is called. */
const ELSEWHERE = String.raw`--[^\n]*|'[^']*'|"[^"]*"`
const CALLED = String.raw`(?<![\w.$])(?:pg_(?!catalog\b|temp\b)\w+|(?:${FUNCTIONS.join('|')})(?=\())`

const PLACES = new RegExp(`(${ELSEWHERE})|(${CALLED})|(${OPERATORS})`, 'g')

export function qualify(statement: string): string {
  return statement.replace(PLACES, (text, elsewhere?: string, called?: string) => {
    if (elsewhere !== undefined) return text
    return called === undefined ? ` operator(pg_catalog.${text}) ` : `pg_catalog.${text}`
  })
}

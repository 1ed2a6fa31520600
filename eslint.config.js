import js from '@eslint/js'
import { defineConfig } from 'eslint/config'
import { createNodeResolver, importX } from 'eslint-plugin-import-x'
import tseslint from 'typescript-eslint'
import layers from './eslint.layers.js'

/** What tsconfig.json and ui/tsconfig.json include; typed rules work on nothing else. */
const TYPED = ['src/**/*.ts', 'test/**/*.ts', 'vitest.config.ts', 'ui/**/*.{ts,tsx}']

const NODE_GLOBALS = [
  ...['AbortController', 'AbortSignal', 'Buffer', 'URL', 'URLSearchParams', 'TextDecoder', 'TextEncoder'],
  ...['clearInterval', 'clearTimeout', 'console', 'fetch', 'performance', 'process', 'queueMicrotask', 'Response'],
  ...['setImmediate', 'setInterval', 'setTimeout', 'structuredClone'],
]

export default defineConfig(
  {
    ignores: [
      'dist',
      'coverage',
      '**/node_modules',
      'src/postgres/migrations.generated.ts',
      'src/admin/doctor/expected.generated.ts',
      'test/packaging/project',
      'examples/prisma/client',
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      'object-shorthand': 'error',
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: Object.fromEntries(NODE_GLOBALS.map((name) => [name, 'readonly'])) },
  },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommended],
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: TYPED,
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-deprecated': 'error',
      // What a handler threw is thrown on as it is, whatever it is; a literal of our own is not an error.
      '@typescript-eslint/only-throw-error': 'off',
      'no-throw-literal': 'error',
      // Options are destructured, and their functions are written as methods.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // An async function without an await is how an interface that answers with a promise is implemented.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    plugins: { oncebox: layers, 'import-x': importX },
    settings: {
      'import-x/extensions': ['.ts', '.js'],
      // Packages are no part of our cycles, and PGlite's bundle is too large to parse.
      'import-x/ignore': ['/node_modules/'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
      'import-x/resolver-next': [
        createNodeResolver({ extensions: ['.ts', '.js'], extensionAlias: { '.js': ['.ts', '.js'] } }),
      ],
    },
    rules: {
      'oncebox/one-way': 'error',
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'no-console': 'error',
      // What always travels together is one object.
      'max-params': ['error', 4],
    },
  },
  {
    files: ['ui/src/**/*.{ts,tsx}'],
    rules: {
      'no-console': 'error',
      'max-params': ['error', 4],
      'max-lines': ['error', 300],
      // What is shown is text: nothing in a message becomes markup.
      'no-restricted-syntax': [
        'error',
        {
          selector: 'MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]',
          message: 'Render it.',
        },
        { selector: 'JSXAttribute[name.name=/^(dangerouslySetInnerHTML|style)$/]', message: 'Use text, and a class.' },
      ],
    },
  },
  // Nest injects by the types of parameters: such an import is needed at run time.
  {
    files: ['examples/nest/**/*.ts'],
    languageOptions: { parserOptions: { emitDecoratorMetadata: true, experimentalDecorators: true } },
  },
  // Written as the specification prints it.
  { files: ['src/standard-schema.ts'], rules: { '@typescript-eslint/no-namespace': 'off' } },
  {
    files: ['test/**/*.ts'],
    rules: {
      // Rows and reports come back untyped, and an assertion says what they are.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      // Handlers under test throw anything.
      'no-throw-literal': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
    },
  },
)

/** The toolchains that the package is promised to work with, cell by cell. docs/toolchains.md prints them as a table. */
import { COMMONJS, ES_MODULE, IMPORT_ALL, JEST_PGLITE, JEST_POSTGRES, PRINTED, REQUIRE_ALL } from './programs.js'
import { TYPED, TYPESCRIPT, VITEST } from './programs.js'
import type { Packages } from './project.js'

export interface Cell {
  readonly tool: string
  readonly version: string
  readonly way: string
  /** What the page says: it works, or what to do instead. */
  readonly answer: string
  readonly packages: Packages
  readonly files: Readonly<Record<string, string>>
  /** What is run, one after the other; the last one decides. */
  readonly commands: readonly (readonly string[])[]
  /** The program that runs them, below node_modules; Node.js as it runs the tests if there is none. */
  readonly program?: string
  /** In the output of the last command. */
  readonly expected: RegExp
  readonly fails?: true
  /** Only in the long form. */
  readonly long?: true
}

const WORKS = 'works'
const MANIFEST = { 'package.json': '{}' }
const RUNS = new RegExp(`^${PRINTED}$`, 'm')

const BUNDLERS: Packages = {
  esbuild: '0.28.2',
  webpack: '5.112.2',
  tsx: '4.23.15',
  'ts-node': '10.9.2',
  typescript: '5.9.3',
}
const NODE_24 = '24.21.0'
const NODES = { '22': '22.23.3', '24': NODE_24 }
const JESTS = { '29': '29.7.0', '30': '30.5.2' }
const BUN = '1.4.4'
const FLAG = '--experimental-vm-modules'

/** Of each minor version the last one: the oldest and the newest in the short form. */
export const TYPESCRIPTS = ['5.4.5', '5.5.4', '5.6.3', '5.7.3', '5.8.3', '5.9.3', '6.0.3', '7.0.2']

const node = (...versions: (keyof typeof NODES)[]): Cell[] =>
  [undefined, ...versions].flatMap((version): Cell[] => {
    const packages: Packages = version ? { node: NODES[version] } : {}
    const base = {
      tool: 'Node.js',
      version: version ?? '20',
      answer: WORKS,
      packages,
      ...(version && { program: 'node/bin/node' }),
      ...(version === '22' && { long: true as const }),
      expected: RUNS,
    }
    return [
      {
        ...base,
        way: '`import`',
        files: { ...MANIFEST, 'all.mjs': IMPORT_ALL, 'main.mjs': ES_MODULE },
        commands: [['all.mjs'], ['main.mjs']],
      },
      {
        ...base,
        way: '`require`',
        files: { ...MANIFEST, 'all.cjs': REQUIRE_ALL, 'main.cjs': COMMONJS },
        commands: [['all.cjs'], ['main.cjs']],
      },
    ]
  })

function jest(version: keyof typeof JESTS): Cell[] {
  const base = {
    tool: 'Jest',
    version,
    answer: WORKS,
    packages: { jest: JESTS[version] },
    expected: /1 passed, 1 total/,
  }
  const postgres = { ...base, files: { ...MANIFEST, 'a.test.js': JEST_POSTGRES } }
  const pglite = { ...base, files: { ...MANIFEST, 'a.test.js': JEST_PGLITE } }
  const runs = (...flags: string[]) => [[...flags, 'node_modules/jest/bin/jest.js']]
  return [
    { ...postgres, way: 'no flag, your PostgreSQL', commands: runs() },
    { ...postgres, way: `\`${FLAG}\`, your PostgreSQL`, commands: runs(FLAG), ...(version === '29' && { long: true }) },
    {
      ...pglite,
      way: 'no flag, PGlite',
      answer: `no: PGlite needs \`NODE_OPTIONS=${FLAG}\``,
      commands: runs(),
      fails: true,
      ...(version === '29' && { long: true }),
      expected: /createTestBox.*without NODE_OPTIONS=--experimental-vm-modules/,
    },
    { ...pglite, way: `\`${FLAG}\`, PGlite`, commands: runs(FLAG), long: true },
  ]
}

const runners: Cell[] = [
  {
    ...{ tool: 'Vitest', version: '4', way: '`vitest run`', answer: WORKS, packages: {} },
    files: { 'package.json': '{ "type": "module" }', 'a.test.js': VITEST },
    commands: [['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=1']],
    expected: /1 passed/,
  },
  {
    ...{ tool: 'tsx', version: '4', way: '`tsx main.ts`', answer: WORKS, packages: BUNDLERS, expected: RUNS },
    files: { ...MANIFEST, 'main.ts': TYPESCRIPT },
    commands: [['node_modules/tsx/dist/cli.mjs', 'main.ts']],
  },
  {
    ...{
      tool: 'ts-node',
      version: '10',
      way: 'CommonJS, types checked, with TypeScript 5',
      answer: WORKS,
      packages: BUNDLERS,
    },
    files: { ...MANIFEST, 'main.ts': TYPESCRIPT, 'tsconfig.json': config('commonjs', 'node10') },
    commands: [['node_modules/ts-node/dist/bin.js', 'main.ts']],
    expected: RUNS,
  },
  {
    ...{ tool: 'Bun', version: '1', way: '`bun main.ts`', answer: WORKS, packages: { bun: BUN }, expected: RUNS },
    files: { ...MANIFEST, 'main.ts': TYPESCRIPT },
    commands: [['main.ts']],
    program: `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}/bin/bun`,
  },
]

const WEBPACK = `import webpack from 'webpack'
const output = { path: process.cwd(), filename: 'bundle.cjs' }
const options = { mode: 'production', optimization: { minimize: false }, target: 'node20', entry: './main.mjs', output, externals: { 'pg-native': 'commonjs pg-native' } }
webpack(options, (error, stats) => {
  const problems = [...(stats?.compilation.errors ?? []), ...(stats?.compilation.warnings ?? [])].filter(({ message }) => !/pg\\b.*cloudflare|pg-cloudflare/s.test(message))
  for (const problem of [error, ...problems]) if (problem) console.error(problem.message)
  process.exitCode = error || problems.length > 0 ? 1 : 0
})
`

function bundlers(): Cell[] {
  const base = { answer: WORKS, packages: BUNDLERS, expected: RUNS }
  const files = { ...MANIFEST, 'main.mjs': ES_MODULE, 'webpack.mjs': WEBPACK }
  const esbuild = ['node_modules/esbuild/bin/esbuild', 'main.mjs', '--bundle', '--platform=node', '--log-level=warning']
  return [
    {
      ...{ ...base, tool: 'esbuild', version: '0.28', way: 'bundle in CommonJS', files },
      commands: [[...esbuild, '--outfile=bundle.cjs', '--external:pg-native'], ['bundle.cjs']],
    },
    {
      ...{ ...base, tool: 'esbuild', version: '0.28', way: 'bundle in ES modules, `pg` external', files },
      commands: [[...esbuild, '--format=esm', '--outfile=bundle.mjs', '--external:pg'], ['bundle.mjs']],
    },
    {
      ...{ ...base, tool: 'webpack', version: '5', way: 'bundle for Node.js', files },
      commands: [['webpack.mjs'], ['bundle.cjs']],
    },
  ]
}

function config(module: string, moduleResolution: string, more: object = {}): string {
  const compilerOptions = {
    ...{ target: 'es2022', lib: ['es2023', 'esnext.disposable'], module, moduleResolution, types: ['node'] },
    ...{ strict: true, esModuleInterop: true, skipLibCheck: true, noEmit: true, ...more },
  }
  return JSON.stringify({ compilerOptions, files: ['main.ts'] })
}

/** In the short form each of them once, with the compiler that is known to find most fault with it. */
const RESOLUTIONS = [
  { module: 'commonjs', resolution: 'node10', short: '5.4.5' },
  { module: 'nodenext', resolution: 'nodenext', short: '5.4.5' },
  { module: 'esnext', resolution: 'bundler', short: '7.0.2' },
]

function compilers(): Cell[] {
  return TYPESCRIPTS.flatMap((version) =>
    RESOLUTIONS.flatMap(({ module, resolution, short }): Cell[] => {
      // TypeScript 6 says that it is the last one to have it.
      const old = resolution === 'node10' && version.startsWith('6.') ? { ignoreDeprecations: '6.0' } : {}
      const gone = resolution === 'node10' && Number(version.slice(0, 1)) >= 7
      return [
        {
          ...{ tool: 'TypeScript', version: version.split('.').slice(0, 2).join('.') },
          way: `module ${module}, moduleResolution ${resolution}`,
          answer: gone ? 'no: TypeScript 7 has no node10' : WORKS,
          packages: { typescript: version },
          files: { ...MANIFEST, 'main.ts': TYPED, 'tsconfig.json': config(module, resolution, old) },
          commands: [['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--pretty', 'false']],
          expected: gone ? /node10/ : /^$/,
          ...(gone && { fails: true }),
          ...(version !== short && { long: true }),
        },
      ]
    }),
  )
}

export const CELLS: readonly Cell[] = [
  ...node('22', '24'),
  ...jest('29'),
  ...jest('30'),
  ...runners,
  ...bundlers(),
  ...compilers(),
]

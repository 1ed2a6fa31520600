/** What a project is like: how it is written, and what it has installed. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { readManifest, type Manifest } from './manifest.js'
import { packageManagerOf, type PackageManager } from './package-manager.js'
import { readTsConfig } from './tsconfig.js'

/** In the order in which they are looked for: an ORM before the client that it sits on. */
export const CLIENTS = ['drizzle', 'kysely', 'knex', 'typeorm', 'prisma', 'mikro-orm', 'sequelize', 'pg', 'postgres', 'pglite'] as const // prettier-ignore
export type Client = (typeof CLIENTS)[number]

const PACKAGES: Readonly<Record<Client, string>> = {
  drizzle: 'drizzle-orm',
  kysely: 'kysely',
  knex: 'knex',
  typeorm: 'typeorm',
  prisma: '@prisma/client',
  'mikro-orm': '@mikro-orm/postgresql',
  sequelize: 'sequelize',
  pg: 'pg',
  postgres: 'postgres',
  pglite: '@electric-sql/pglite',
}

const BROKERS: Readonly<Record<string, string>> = {
  amqplib: 'rabbitmq',
  kafkajs: 'kafka',
  '@confluentinc/kafka-javascript': 'kafka',
  '@nats-io/jetstream': 'nats',
  '@aws-sdk/client-sqs': 'sqs',
  redis: 'redis',
}

export interface Project {
  readonly directory: string
  readonly manifest: Manifest
  readonly manager: PackageManager
  readonly typescript: boolean
  /** Undefined if package.json does not say. */
  readonly type: 'module' | 'commonjs' | undefined
  readonly client: Client
  /** It has that client already. */
  readonly hasClient: boolean
  /** The names of oncebox's pages about the brokers it has. */
  readonly brokers: readonly string[]
  readonly runner: 'vitest' | 'jest' | 'node'
  /** What its imports of files end with. */
  readonly importsTs: boolean
  /** Imports and exports stay as they are written: a file of CommonJS can have none. */
  readonly verbatim: boolean
  /** From the project, without a slash at the end. */
  readonly folder: string
  /** Where the generated client of Prisma is, from the project; undefined if it is @prisma/client itself. */
  readonly prismaClient: string | undefined
  has(name: string): boolean
}

export async function lookAt(directory: string): Promise<Project> {
  const manifest = await readManifest(directory)
  const installed = { ...manifest.dependencies, ...manifest.devDependencies }
  const has = (name: string): boolean => Object.hasOwn(installed, name)
  const inUse = (name: string): boolean =>
    has(name) && (name !== PACKAGES.pglite || manifest.dependencies?.[name] !== undefined)
  const found = CLIENTS.find((client) => inUse(PACKAGES[client]))
  const tsconfig = await readTsConfig(directory)
  const { type } = manifest
  return {
    ...{ directory, manifest, has },
    manager: await packageManagerOf(directory),
    typescript: tsconfig !== undefined || has('typescript'),
    type: type === 'module' || type === 'commonjs' ? type : undefined,
    client: found ?? 'pg',
    hasClient: found !== undefined,
    brokers: [
      ...new Set(
        Object.keys(BROKERS)
          .filter(has)
          .map((name) => BROKERS[name]!),
      ),
    ],
    runner: has('vitest') ? 'vitest' : has('jest') ? 'jest' : 'node',
    importsTs: ['allowImportingTsExtensions', 'rewriteRelativeImportExtensions'].some((name) => tsconfig?.isOn(name)),
    verbatim: tsconfig?.isOn('verbatimModuleSyntax') ?? false,
    folder: existsSync(path.join(directory, 'src')) ? 'src/inbox' : 'inbox',
    prismaClient: await prismaOutput(directory),
  }
}

async function prismaOutput(directory: string): Promise<string | undefined> {
  const schema = await readFile(path.join(directory, 'prisma/schema.prisma'), 'utf8').catch(() => '')
  const [, output] = /^\s*output\s*=\s*"([^"]+)"/m.exec(schema) ?? []
  return output === undefined ? undefined : path.posix.join('prisma', output)
}

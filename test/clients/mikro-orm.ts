/** The version of MikroORM that is tested: it says that it needs Node.js 22, so package.json cannot have it. */
import { installed } from './versions.js'

export const MIKRO_ORM = (): Promise<string> =>
  installed('@mikro-orm/core@7.2.1', '@mikro-orm/postgresql@7.2.1', '@mikro-orm/sql@7.2.1')

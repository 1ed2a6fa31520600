/** The lowest versions have no types of their own, or older ones: whoever uses them sees them as the newest. */
declare module 'pg-lowest' {
  import pg from 'pg'
  export default pg
}

declare module 'postgres-lowest' {
  import postgres from 'postgres'
  export default postgres
}

declare module 'pglite-lowest' {
  export { PGlite } from '@electric-sql/pglite'
}

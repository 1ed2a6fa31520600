/** What of the functions that print SQL compiles. */
import { expectTypeOf, test } from 'vitest'
import { migrationSql, rolesSql, type Role } from 'oncebox'

test('rolesSql takes a schema and names of roles, and answers text', () => {
  expectTypeOf(rolesSql()).toEqualTypeOf<string>()
  expectTypeOf(rolesSql({ schema: 'shop', roles: { viewer: 'analysts' } })).toEqualTypeOf<string>()
  expectTypeOf<Role>().toEqualTypeOf<'owner' | 'producer' | 'worker' | 'janitor' | 'viewer' | 'reader'>()
  // @ts-expect-error there is no such role
  rolesSql({ roles: { admin: 'root' } })
  // @ts-expect-error a role has one name
  rolesSql({ roles: { viewer: ['a', 'b'] } })
})

test('migrationSql takes a schema and a version, and answers text', () => {
  expectTypeOf(migrationSql({ schema: 'shop', from: 3 })).toEqualTypeOf<string>()
  // @ts-expect-error a version is a number
  migrationSql({ from: '3' })
})

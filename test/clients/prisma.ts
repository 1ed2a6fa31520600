/** A second Prisma: package.json has the newest one, and what is promised begins with it. */
import { cp, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { installed } from './versions.js'

const GENERATED = fileURLToPath(new URL('../../examples/prisma/client', import.meta.url))

/** The runtime and the adapter before it, under the client of the examples: to generate one takes a program to download. */
export async function formerPrisma(): Promise<string> {
  const directory = await installed('@prisma/client@7.9.1', '@prisma/adapter-pg@7.9.1', 'pg@8.23.1')
  const client = path.join(directory, 'client')
  await cp(GENERATED, client, { recursive: true })
  await writeFile(path.join(client, 'package.json'), '{ "type": "module" }\n')
  return directory
}

/** Stands for src/dashboard/location.ts in the tests, which run from the source: the interface is where the build puts it. */
import { fileURLToPath } from 'node:url'

export const UI: string = fileURLToPath(new URL('../../dist/dashboard/ui', import.meta.url))

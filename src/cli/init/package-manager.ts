/** The package manager of a project, and what it is told. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { readManifest } from './manifest.js'

export type PackageManager = 'npm' | 'pnpm' | 'yarn' | 'bun'

const LOCKFILES: readonly (readonly [string, PackageManager])[] = [
  ['package-lock.json', 'npm'],
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
]

/** By package.json's own word, else by the nearest lockfile: a workspace has it at its root. */
export async function packageManagerOf(project: string): Promise<PackageManager> {
  for (let directory = project; ; directory = path.dirname(directory)) {
    const [named] = (await readManifest(directory)).packageManager?.split('@') ?? []
    const found = LOCKFILES.find(([, manager]) => manager === named) ?? LOCKFILES.find(([file]) => existsSync(path.join(directory, file))) // prettier-ignore
    if (found) return found[1]
    if (path.dirname(directory) === directory) return 'npm'
  }
}

export function installCommand(
  manager: PackageManager,
  packages: readonly string[],
  { dev }: { readonly dev: boolean },
): string[] {
  if (manager === 'npm') return ['npm', 'install', ...(dev ? ['--save-dev'] : []), ...packages]
  return [manager, 'add', ...(dev ? [manager === 'pnpm' ? '--save-dev' : '--dev'] : []), ...packages]
}

/** `npm run dev`, `yarn dev` */
export function runCommand(manager: PackageManager, script: string): string {
  return manager === 'npm' || manager === 'bun' ? `${manager} run ${script}` : `${manager} ${script}`
}

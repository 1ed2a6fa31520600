export interface Installed {
  readonly directory: string
  readonly require: NodeJS.Require
}

/** `packages` are exact: `koa@3.2.1`, or `express4@npm:express@4.22.3`. Their scripts run only if they cannot do without. */
export function installed(
  name: string,
  packages: readonly string[],
  options?: { readonly scripts?: boolean; readonly timeoutMs?: number },
): Promise<Installed>

/** A directory in which these packages, such as `typeorm@0.3.31`, are installed, with a module that imports from there. */
export function installedClient(...packages: readonly [string, ...string[]]): Promise<string>

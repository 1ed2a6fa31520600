import type { PrivateService } from './process.mjs'

export function promtool(args: readonly string[], options?: { cwd?: string; input?: string }): Promise<string>
export function startPrometheus(targets: readonly string[]): Promise<PrivateService>

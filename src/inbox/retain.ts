export function createJanitor(_r: unknown, _c: unknown) { return { start() {}, async stop() {} } }

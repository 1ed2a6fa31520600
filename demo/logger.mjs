/** Retries and takeovers are what the demo is about: they are told with --verbose only, and errors always. */
const verbose = process.env.ONCEBOX_DEMO_VERBOSE === '1'
const say = (fields, text) => process.stderr.write(`[${process.pid}] ${text} ${JSON.stringify(fields)}\n`)

export const quiet = { debug: () => {}, info: () => {}, warn: verbose ? say : () => {}, error: say }

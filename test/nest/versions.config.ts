/** Runs the tests of this folder on the packages of Nest in the directory ONCEBOX_NEST_PACKAGES; see projects.test.ts. */
import { mergeConfig } from 'vitest/config'
import root from '../../vitest.config.js'

const packages = process.env['ONCEBOX_NEST_PACKAGES']

export default mergeConfig(root, {
  root: new URL('../..', import.meta.url).pathname,
  resolve: { alias: [{ find: /^(@nestjs\/[\w-]+|reflect-metadata)$/, replacement: `${packages}/node_modules/$1` }] },
})

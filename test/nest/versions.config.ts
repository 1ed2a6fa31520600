/**
 * Runs the tests of this folder on the packages of Nest in the directory ONCEBOX_NEST_PACKAGES, and writes report.json there;
 * see projects.test.ts.
 */
import path from 'node:path'
import { mergeConfig } from 'vitest/config'
import { ROOT } from '../docs/markdown.js'
import root from '../../vitest.config.js'

const packages = process.env['ONCEBOX_NEST_PACKAGES']!
const alias = { find: /^(@nestjs\/[\w-]+|reflect-metadata)$/, replacement: `${packages}/node_modules/$1` }
const merged = mergeConfig(root, { root: ROOT, resolve: { alias: [alias] } })

export default {
  ...merged,
  test: { ...merged['test'], reporters: [['json', { outputFile: path.join(packages, 'report.json') }]] },
}

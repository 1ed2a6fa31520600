/**
 * Runs the long forms of slow suites: `npm run test:long`, or some of them: `npm run test:long -- kills chain`.
 *
 * One after the other, each to its end; the exit code says whether all passed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { FORMS } from './forms.mjs'

const asked = process.argv.slice(2)
if (asked.includes('--list') || asked.includes('--help')) {
  for (const { name, about } of FORMS) console.log(name.padEnd(14), about)
  process.exit(0)
}
const unknown = asked.filter((name) => !FORMS.some((form) => form.name === name))
if (unknown.length > 0) {
  console.error(`there is no form ${unknown.join(', ')}; npm run test:long -- --list names them`)
  process.exit(2)
}

const failed = []
for (const { name, about, variables, files } of FORMS) {
  if (asked.length > 0 && !asked.includes(name)) continue
  console.log(`\n── ${name}: ${about}`)
  const arguments_ = [
    'node_modules/vitest/vitest.mjs',
    'run',
    ...files,
    '--typecheck.enabled=false',
    '--testTimeout=3600000',
  ]
  const child = spawn(process.execPath, arguments_, { stdio: 'inherit', env: { ...process.env, ...variables } })
  const [code] = await once(child, 'close')
  if (code !== 0) failed.push(name)
}
console.log(failed.length === 0 ? '\nall passed' : `\nfailed: ${failed.join(', ')}`)
process.exit(failed.length === 0 ? 0 : 1)

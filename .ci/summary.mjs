// Prints `N passed, N failed` from vitest's JSON report. Exits with the status of the run, or 1 if the report has failures.
import { readFileSync } from 'node:fs'

const [file, status] = process.argv.slice(2)
let passed = 0
let failed = 0
try {
  const report = JSON.parse(readFileSync(file, 'utf8'))
  passed = report.numPassedTests
  // A file that could not be loaded has no tests to fail, and still failed.
  const broken = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  )
  failed = report.numFailedTests + broken.length
} catch {
  // No report: the build or a check failed before the tests began, or none ran at all.
  failed = 1
}
const code = Number(status) || (failed > 0 ? 1 : 0)
if (code !== 0 && failed === 0) failed = 1
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = code

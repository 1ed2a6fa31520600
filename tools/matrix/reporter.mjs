/**
 * Names each failure as it happens, and keeps what is known on disk: a cell takes long, and may be stopped before its end.
 * Writes to the file that `ONCEBOX_MATRIX_REPORT` names, one JSON object a line: `{ file, test, state, error }`.
 */
import { appendFileSync } from 'node:fs'

export default class MatrixReporter {
  #counts = { passed: 0, failed: 0, skipped: 0 }

  onTestCaseResult(test) {
    const { state, errors = [] } = test.result()
    this.#counts[state] += 1
    const [error] = errors
    this.#write({ file: test.module.relativeModuleId, test: test.fullName, state, error: error?.message })
    if (state === 'failed') console.log(`   ✗ ${test.fullName}\n     ${firstLine(error?.message)}`)
  }

  onTestModuleEnd(module) {
    const { passed, failed } = this.#counts
    // What fails before its first test has no test to be named by.
    for (const error of module.errors()) {
      this.#write({ file: module.relativeModuleId, test: undefined, state: 'failed', error: error.message })
      console.log(`   ✗ ${module.relativeModuleId}: could not be run\n     ${firstLine(error.message)}`)
    }
    console.log(`   ${module.relativeModuleId}: ${passed} passed and ${failed} failed so far`)
  }

  #write(line) {
    const file = process.env.ONCEBOX_MATRIX_REPORT
    if (file) appendFileSync(file, `${JSON.stringify(line)}\n`)
  }
}

function firstLine(text = '') {
  return text.split('\n')[0].slice(0, 200)
}

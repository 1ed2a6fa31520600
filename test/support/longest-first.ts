/** Files that take minutes begin first: the last one to end would run alone, with a processor to spare. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const LONG =
  /test\/(examples\/examples|toolchains\/toolchains|nest\/projects|brokers\/\w+\/(faults|conformance)|effects\/kills|versions\/lowest)\.test\.ts$/

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

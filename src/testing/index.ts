/** The test kit: a box on a throw-away schema, with a clock you can move and crashes you can place. */
export { createTestBox, type TestBox, type TestBoxOptions } from './test-box.js'
export type { PgliteQueryOptions, PgliteResults, PgliteTx } from './pglite.js'
export { crashAt, SimulatedCrash, type Failpoint } from './crash.js'
export {
  driverConformance,
  type ConformanceCase,
  type DriverCapabilities,
  type DriverConformance,
  type DriverFaults,
  type DriverUnderTest,
} from './driver-conformance/index.js'
export {
  brokerConformance,
  type BrokerCapabilities,
  type BrokerConformance,
  type BrokerUnderTest,
  type ChannelOptions,
  type RawMessage,
} from './broker/conformance.js'

import { brokerFaults } from '../faults.js'

// What a killed process held comes back message by message; the fewer those are, the shorter the test.
brokerFaults(new URL('./adapter.mjs', import.meta.url), { sourceOptions: { batch: 50, pollers: 2 } })

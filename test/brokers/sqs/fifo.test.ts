import { brokerFaults } from '../faults.js'

// Its groups make it slower than a standard queue, whose tests have the sizes of the promise.
brokerFaults(new URL('./fifo-adapter.mjs', import.meta.url), {
  messages: 400,
  consumerKills: 2,
  relayKills: 2,
  sourceOptions: { batch: 50, pollers: 2 },
})

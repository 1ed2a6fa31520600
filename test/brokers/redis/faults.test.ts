import { brokerFaults } from '../faults.js'

brokerFaults(new URL('./adapter.mjs', import.meta.url))

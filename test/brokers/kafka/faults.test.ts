import { kindOf } from '../../../tools/services/kafka.mjs'
import { brokerFaults } from '../faults.js'

// The mock misses a member that was killed after 10 s, and not after 2.
const fewer = { consumerKills: 4, relayKills: 10 }
brokerFaults(new URL('./adapter.mjs', import.meta.url), (await kindOf()) === 'mock' ? fewer : {})

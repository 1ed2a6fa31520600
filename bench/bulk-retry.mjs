/**
 * A retry of every dead message of a consumer through the dashboard, as its page does it: counted, confirmed, watched, cancelled in
 * the middle, counted again and carried to its end. After the cancel and after the end, what the job says is compared with the tables.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { dashboard } from 'oncebox/dashboard'
import { createClient } from 'oncebox/dashboard/client'

const ORIGIN = 'http://localhost'
/** As fast as the dashboard allows. */
const PER_SECOND = 10_000
const LOOK_MS = 100

/** Prints what it sees. Answers what is not as it has to be, in words; `count` gives the dead and the pending of a consumer. */
export async function retryAll({ box, consumer, dead, limitMs, count }) {
  const ops = dashboard({ box }, { authorize: () => 'all', onError: (error) => console.error(error) })
  const client = createClient({ url: ORIGIN, fetch: (url, init) => ops.fetch(new globalThis.Request(url, init)) })
  const wrong = []
  const expect = (what, found, wanted) => {
    if (found !== wanted) wrong.push(`${what}: ${found}, not ${wanted}`)
    console.log(`  ${what}: ${found}${found === wanted ? '' : `, not ${wanted}`}`)
  }
  const query = { box: 'box', q: `consumer:${consumer} state:dead` }
  const before = await count(consumer)
  const tableIs = async (done) => {
    const { pending, dead: left } = await count(consumer)
    expect('dead in the table', left, dead - done)
    expect('pending in the table, more than before', pending - before.pending, done)
  }

  try {
    const first = await begin(client, query)
    expect('counted', first.counted, dead)
    const half = await watch(client, first.job, { until: (job) => job.done >= dead / 2 })
    const cancelling = performance.now()
    await client.cancelRetry({ box: 'box', job: first.job.id })
    const { job: cancelled } = await watch(client, first.job)
    console.log(`cancelled at ${half.job.done} of ${dead}, ended ${ms(performance.now() - cancelling)} later`)
    expect('state', cancelled.state, 'cancelled')
    expect(
      'done and skipped in the middle of it',
      cancelled.done + cancelled.skipped > 0 && cancelled.done < dead,
      true,
    )
    await tableIs(cancelled.done)

    const second = await begin(client, query)
    expect('counted again', second.counted, dead - cancelled.done)
    const rest = await watch(client, second.job)
    expect('state', rest.job.state, 'done')
    expect('both jobs together', cancelled.done + rest.job.done, dead)
    await tableIs(dead)
    const looks = [...half.looks, ...rest.looks].sort((one, other) => one - other)
    const median = looks[Math.floor(looks.length / 2)]
    console.log(`progress read ${looks.length} times meanwhile: median ${ms(median)}, longest ${ms(looks.at(-1))}`)
    if (median > limitMs) wrong.push(`progress takes ${ms(median)}`)
  } finally {
    await ops.close()
  }
  return wrong
}

async function begin(client, query) {
  const counting = performance.now()
  const { count, confirmation } = await client.countRetry(query)
  const starting = performance.now()
  const { box } = query
  const job = await client.retry({ box, confirmation, perSecond: PER_SECOND, reason: 'bench' })
  const started = performance.now()
  console.log(`\nretry of ${count}: counted in ${ms(starting - counting)}, begun in ${ms(started - starting)}`)
  return { counted: count, job }
}

/** Reads the progress until the job has ended, or come so far. */
async function watch(client, { id }, { until = () => false } = {}) {
  const looks = []
  const began = performance.now()
  for (let last = 0; ; await sleep(LOOK_MS)) {
    const looking = performance.now()
    const { jobs } = await client.jobs({ box: 'box' })
    looks.push(performance.now() - looking)
    const job = jobs.find((one) => one.id === id)
    if (job.done < last) throw new Error(`progress went back from ${last} to ${job.done}`)
    last = job.done
    if (job.state === 'running' && !until(job)) continue
    console.log(`  ${job.done} done, ${job.skipped} skipped after ${ms(performance.now() - began)}: ${job.state}`)
    return { job, looks }
  }
}

function ms(time) {
  return time < 10_000 ? `${time.toFixed(0)} ms` : `${(time / 1000).toFixed(1)} s`
}

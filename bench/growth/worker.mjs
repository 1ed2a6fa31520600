/** A process of the growth benchmark: `node worker.mjs <url> <schema>`. Works until its input ends. */
import { once } from 'node:events'
import { Library } from '../library.mjs'

const [url, schema] = process.argv.slice(2)
const box = new Library(url, schema)
await box.open({})
await box.start(() => {})
console.log('started')
process.stdin.resume()
await once(process.stdin, 'end')
await box.stop()
process.exit(0)

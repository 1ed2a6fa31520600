/** Bodies that are not JSON. */
import assert from 'node:assert/strict'
import { codecProblem, type Codec } from '../../brokers/codec.js'
import { event, rawEvent, Recorder, type Add } from './bench.js'

export function codecs(promise: Add): void {
  /** Every byte is turned around, so that nothing but the codec can read it. */
  const mirror = (binary: boolean): Codec => ({
    contentType: 'application/x-mirror',
    decode(body) {
      const bytes = binary ? body.map((byte) => byte ^ 0xff) : Uint8Array.from(body).reverse()
      return JSON.parse(Buffer.from(bytes).toString()) as unknown
    },
    encode(data) {
      const bytes = Buffer.from(JSON.stringify(data))
      return binary ? bytes.map((byte) => byte ^ 0xff) : Uint8Array.from(bytes).reverse()
    },
  })

  promise('a codec writes and reads bodies; what it cannot read comes as it is, and is marked', async (bench) => {
    const codec = mirror(bench.can.binary)
    await bench.send([event('coded', { data: { secret: [1, 2] } })], { codec })
    await bench.broker.publish([rawEvent(bench.can.prefix, 'broken', 'no mirror image')])
    const recorder = new Recorder()
    await bench.start(recorder, { codec })
    await bench.until(() => recorder.messages.length >= 2, 'both')
    const coded = recorder.messages.find(({ id }) => id === 'coded')
    const broken = recorder.messages.find(({ id }) => id === 'broken')
    assert.deepEqual(coded?.data, { secret: [1, 2] })
    assert.equal(codecProblem(coded), undefined)
    assert.equal(Buffer.from(broken!.body!).toString(), 'no mirror image')
    assert.ok(codecProblem(broken!))
  })

  promise('an event that the codec cannot write is refused for good, and the others are published', async (bench) => {
    const codec: Codec = {
      ...mirror(false),
      encode: (data) => {
        if ((data as { id: string }).id === 'b') throw new Error('cannot be written')
        return Buffer.from(JSON.stringify(data))
      },
      decode: (body) => JSON.parse(Buffer.from(body).toString()) as unknown,
    }
    const batch = [event('a', { key: 'x' }), event('b', { key: 'y' }), event('c', { key: 'y' }), event('d')]
    const answers = await bench.sink({ codec }).publish(batch)
    assert.deepEqual(
      answers.map((answer) => answer?.retry),
      // What follows in the same key was not sent.
      [undefined, false, true, undefined],
    )
    const recorder = new Recorder()
    await bench.start(recorder, { codec })
    await bench.until(() => recorder.messages.length >= 2, 'the others')
    assert.deepEqual([...recorder.ids].sort(), ['a', 'd'])
  })
}

/**
 * The server's answers from memory: what was asked once on a socket, byte for byte, is answered as it was then. So CPU time is that of
 * Node.js alone. On a server, what a statement takes depends on where the scheduler has put the process at the other end, and
 * two connections differ by more than what is measured, for as long as both live.
 *
 * Only for one statement after the other: all that comes before the next is written is taken for the answer.
 */
import { Socket } from 'node:net'

const answers = new Map()
/** What a socket was asked, and what it has answered so far. */
let recorded = new WeakMap()
let isOn = false

/** Whatever is asked until the work has ended is answered from memory, if it was asked before. */
export async function replaying(work) {
  isOn = true
  try {
    return await work()
  } finally {
    isOn = false
    recorded = new WeakMap()
  }
}

const { _write, _writev, push } = Socket.prototype
const bytesOf = (chunk) => (typeof chunk === 'string' ? chunk : chunk.latin1Slice())

Socket.prototype._write = function (chunk, encoding, done) {
  if (!isOn || !answer(this, bytesOf(chunk), done)) _write.call(this, chunk, encoding, done)
}

Socket.prototype._writev = function (chunks, done) {
  if (!isOn || !answer(this, chunks.map(({ chunk }) => bytesOf(chunk)).join(''), done)) _writev.call(this, chunks, done)
}

Socket.prototype.push = function (chunk, encoding) {
  if (chunk) recorded.get(this)?.chunks.push(Buffer.from(chunk))
  return push.call(this, chunk, encoding)
}

function answer(socket, asked, done) {
  const before = recorded.get(socket)
  if (before) answers.set(before.asked, Buffer.concat(before.chunks))
  recorded.delete(socket)
  const known = answers.get(asked)
  if (!known) {
    recorded.set(socket, { asked, chunks: [] })
    return false
  }
  done()
  setImmediate(() => push.call(socket, Buffer.from(known)))
  return true
}

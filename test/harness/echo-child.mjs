import { command, emit } from '../support/child.mjs'

emit('ready', { args: process.argv.slice(2), greeting: process.env.GREETING })
console.log('not an event')
for (;;) {
  const { text } = await command('echo')
  if (text === 'die') {
    emit('dying')
    process.kill(process.pid, 'SIGKILL')
  }
  emit('echo', { text })
}

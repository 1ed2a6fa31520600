/** `node server.mjs <port>`: fauxqs, on the loopback address. */
import { buildApp } from 'fauxqs'

await buildApp({ logger: false }).listen({ port: Number(process.argv[2]), host: '127.0.0.1' })

/** `node mock-process.mjs <librdkafka.so.1> <file>`: runs a mock cluster, and writes its address into the file. */
import { renameSync, writeFileSync } from 'node:fs'
import koffi from 'koffi'

const [library, file] = process.argv.slice(2)
const rdkafka = koffi.load(library)
const PRODUCER = 0

const createConf = rdkafka.func('void *rd_kafka_conf_new()')
const createClient = rdkafka.func('void *rd_kafka_new(int type, void *conf, char *error, size_t size)')
const createCluster = rdkafka.func('void *rd_kafka_mock_cluster_new(void *client, int brokers)')
const bootstraps = rdkafka.func('const char *rd_kafka_mock_cluster_bootstraps(void *cluster)')

const client = createClient(PRODUCER, createConf(), Buffer.alloc(512), 512)
if (!client) throw new Error('librdkafka gave no client')
const cluster = createCluster(client, 1)
writeFileSync(`${file}.new`, bootstraps(cluster))
renameSync(`${file}.new`, file)

setInterval(() => {}, 60_000)

/** Loads the config of a directory as a command does, and prints what came of it: `node load-config.mjs <directory> [file]` */
import { requireConfig } from '../../dist/cli/config.js'

const [directory, file] = process.argv.slice(2)
try {
  const { file: found, config } = await requireConfig(directory, file)
  const box = typeof config.box === 'function' ? await config.box() : config.box
  console.log(JSON.stringify({ file: found, schema: config.schema, note: box.note }))
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message, advice: error.advice }))
}

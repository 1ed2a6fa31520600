/**
 * Who publishes the package, and where its repository is: four fields of package.json, from two words.
 *
 *   npm run publisher -- <owner/repository on GitHub> "<name> <address>"    writes author, homepage, repository and bugs
 *   node scripts/publisher.mjs --check                                      exits with 1 if nobody has: before a publish
 */
import { readFileSync, writeFileSync } from 'node:fs'

const PLACEHOLDER = 'OWNER'
/** Of the working directory, which npm sets. */
const FILE = 'package.json'
const manifest = JSON.parse(readFileSync(FILE, 'utf8'))
const [first, author] = process.argv.slice(2)

if (first === '--check') {
  const { author, homepage, repository, bugs } = manifest
  if (JSON.stringify({ author, homepage, repository, bugs }).includes(PLACEHOLDER))
    fail('package.json has placeholders')
} else {
  if (!/^[\w.-]+\/[\w.-]+$/.test(first ?? '') || !author) fail('who publishes, and from where?')
  manifest.author = author
  manifest.homepage = `https://github.com/${first}#readme`
  manifest.repository = { type: 'git', url: `git+https://github.com/${first}.git` }
  manifest.bugs = { url: `https://github.com/${first}/issues` }
  writeFileSync(FILE, `${JSON.stringify(manifest, null, 2)}\n`)
}

function fail(problem) {
  console.error(`${problem}: npm run publisher -- <owner/repository> "<name> <address>"`)
  process.exit(1)
}

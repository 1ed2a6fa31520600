/** `oncebox init`: writes what a project needs to begin with. */
import { spawn } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../command.js'
import { confirm } from '../confirm.js'
import { EXIT, Exit, failed } from '../exit.js'
import { lookAt, type Project } from '../init/look.js'
import { withScripts } from '../init/manifest.js'
import { installCommand, runCommand } from '../init/package-manager.js'
import { planFor, type Plan } from '../init/plan.js'
import type { Io } from '../io.js'
import { flag } from '../option.js'
import type { Output } from '../output/output.js'
import { paint } from '../output/text.js'

export const init = command({
  noun: 'init',
  summary: 'Write a config, messages, a consumer with its test, and scripts into this project.',
  details: [
    'It looks at the project first: its package manager, TypeScript or JavaScript, the database client or ORM, the broker and the test runner that are installed. It says what it is going to do, and asks. No file is overwritten; run again, it changes nothing.',
  ],
  example: 'oncebox init --dry-run',
  options: {
    dryRun: flag('Only say what would be done.'),
    yes: flag('Do not ask.'),
    noInstall: flag('Install no package; say what is missing.'),
  },
  async run({ options, io, out }) {
    const project = await lookAt(io.cwd)
    const plan = planFor(project, io.env)
    tellProject(out, project)
    if (!tellPlan(out, project, plan, options.noInstall)) {
      out.note('there is nothing to do')
      return EXIT.ok
    }
    if (options.dryRun) return EXIT.ok
    await confirm(io, `go on in ${project.directory}`, { yes: options.yes })
    await writeFiles(project, plan)
    if (!options.noInstall) for (const words of installsOf(project, plan)) await install(words, io)
    out.note(paint('green', 'done'), `; now: ${runCommand(project.manager, scriptOf(project, plan, 'oncebox dev'))}`)
    return EXIT.ok
  },
})

function tellProject(out: Output, { manager, typescript, client, hasClient, brokers, runner }: Project): void {
  const facts = [
    typescript ? 'TypeScript' : 'JavaScript',
    manager,
    hasClient ? client : `no database client: ${client} is added`,
    ...brokers,
    runner === 'node' ? 'node --test' : runner,
  ]
  out.note(`this project: ${facts.join(', ')}`)
}

/** Answers whether there is anything to do. */
function tellPlan(out: Output, project: Project, plan: Plan, noInstall: boolean): boolean {
  for (const name of plan.kept) out.note(paint('dim', 'stays    '), `${name} is there already`)
  for (const { name } of plan.files) out.note(paint('green', 'writes   '), name)
  for (const [name, text] of Object.entries(plan.scripts)) out.note(paint('green', 'script   '), `${name}: ${text}`)
  const installs = installsOf(project, plan)
  for (const words of installs) out.note(paint('green', noInstall ? 'missing  ' : 'installs '), words.join(' '))
  return plan.files.length + Object.keys(plan.scripts).length + (noInstall ? 0 : installs.length) > 0
}

function installsOf({ manager }: Project, { dependencies, devDependencies }: Plan): string[][] {
  return [
    ...(dependencies.length > 0 ? [installCommand(manager, dependencies, { dev: false })] : []),
    ...(devDependencies.length > 0 ? [installCommand(manager, devDependencies, { dev: true })] : []),
  ]
}

async function writeFiles({ directory }: Project, { files, scripts }: Plan): Promise<void> {
  for (const { name, text } of files) {
    const file = path.join(directory, name)
    await mkdir(path.dirname(file), { recursive: true })
    // Somebody may have written it since we looked.
    await writeFile(file, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw failed(`${file} cannot be written: ${error.code ?? error.message}`)
    })
  }
  if (Object.keys(scripts).length === 0) return
  const manifest = path.join(directory, 'package.json')
  const text = await readFile(manifest, 'utf8').catch(() => '{}')
  await writeFile(manifest, withScripts(text, scripts))
}

async function install(words: readonly string[], { cwd, env, signal }: Io): Promise<void> {
  const [program = '', ...args] = words
  const child = spawn(program, args, {
    ...{ cwd, env, shell: process.platform === 'win32' },
    // What it prints is no data of ours.
    stdio: ['ignore', process.stderr, process.stderr],
  })
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null))
    child.once('exit', resolve)
  })
  if (signal.aborted)
    throw new Exit(EXIT.interrupted, 'interrupted; the files are written, and some packages are missing')
  if (code !== 0) throw failed(`${words.join(' ')} failed`, 'the files are written; run that command yourself')
}

function scriptOf({ manifest }: Project, { scripts }: Plan, text: string): string {
  const all = Object.entries({ ...manifest.scripts, ...scripts })
  return all.find(([, command]) => command === text)?.[0] ?? 'dev'
}

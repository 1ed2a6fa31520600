/** `oncebox completion`: commands and options for the Tab key, from the same declarations as `--help`. */
import { allOptions, command, dashed, type Command } from '../command.js'
import { choiceArgument } from '../option.js'

export const completion = command({
  noun: 'completion',
  summary: 'Print a script that completes commands and options in your shell.',
  details: [
    'bash: add the line to ~/.bashrc. zsh: to ~/.zshrc, behind compinit. fish: oncebox completion fish | source',
  ],
  example: 'source <(oncebox completion bash)',
  arguments: { shell: choiceArgument('The shell.', ['bash', 'zsh', 'fish']) },
  async run({ out, args, commands }) {
    out.verbatim(SCRIPTS[args.shell](await commands()))
  },
})

const SCRIPTS = { bash, zsh, fish }

/** All that can be typed behind the words of a command. */
function flagsOf(of: Command): string[] {
  const { own, output, connection } = allOptions(of)
  return Object.keys({ ...own, ...output, ...connection }).map((name) => `--${dashed(name)}`)
}

function choicesOf(of: Command): string[] {
  return Object.values(of.arguments).flatMap(({ choices }) => choices ?? [])
}

/** A noun → its verbs. */
function nounsOf(commands: readonly Command[]): Map<string, string[]> {
  const nouns = new Map<string, string[]>()
  for (const { noun, verb } of commands)
    nouns.set(noun, [...(nouns.get(noun) ?? []), ...(verb === undefined ? [] : [verb])])
  return nouns
}

function bash(commands: readonly Command[]): string {
  const nouns = nounsOf(commands)
  const verbs = [...nouns].filter(([, own]) => own.length > 0)
  return [
    '_oncebox() {',
    '  local words="" current="${COMP_WORDS[COMP_CWORD]}"',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${[...nouns.keys(), '--help', '--version'].join(' ')}"`,
    '  else',
    '    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in',
    ...commands.map(
      (of) =>
        `      "${of.name}"${of.verb === undefined ? '*' : ''}) words="${[...choicesOf(of), ...flagsOf(of)].join(' ')}" ;;`,
    ),
    '    esac',
    '    if [ "$COMP_CWORD" -eq 2 ]; then',
    '      case "${COMP_WORDS[1]}" in',
    ...verbs.map(([noun, own]) => `        ${noun}) words="${own.join(' ')}" ;;`),
    '      esac',
    '    fi',
    '  fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _oncebox oncebox',
    '',
  ].join('\n')
}

/** zsh runs the functions of bash. */
function zsh(commands: readonly Command[]): string {
  return `#compdef oncebox\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`
}

function fish(commands: readonly Command[]): string {
  const nouns = nounsOf(commands)
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = [...nouns].flatMap(([noun, verbs]) => [
    `complete -c oncebox -f -n __fish_use_subcommand -a ${noun}`,
    ...verbs.map(
      (verb) =>
        `complete -c oncebox -f -n "__oncebox_behind ${noun}; and test (count (commandline -opc)) -eq 2" -a ${verb}`,
    ),
  ])
  const options = commands.flatMap((of) => {
    const behind = `__oncebox_behind ${of.name}`
    const { own, output, connection } = allOptions(of)
    return [
      ...choicesOf(of).map((one) => `complete -c oncebox -f -n "${behind}" -a ${one}`),
      ...Object.entries({ ...own, ...output, ...connection }).map(
        ([name, { summary, value }]) =>
          `complete -c oncebox -n "${behind}" -l ${dashed(name)}${value === undefined ? '' : ' -x'} -d ${quoted(summary)}`,
      ),
    ]
  })
  // By their places: `status` is a command, and a verb of another.
  const begin = [
    'function __oncebox_behind',
    '  set -l words (commandline -opc)',
    '  set -l last (math (count $argv) + 1)',
    '  test "$words[2..$last]" = "$argv"',
    'end',
  ]
  return [...begin, ...lines, ...options, ''].join('\n')
}

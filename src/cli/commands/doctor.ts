/** `oncebox doctor`: what is wrong, why it matters, and what to do. */
import { command } from '../command.js'
import { EXIT } from '../exit.js'
import { paint, type Style } from '../output/text.js'
import { anything, object, oneOf, record, string } from '../shape.js'

const COLOURS: Readonly<Record<string, Style>> = { serious: 'red', warning: 'yellow', note: 'cyan' }

export const doctor = command({
  noun: 'doctor',
  summary: 'Look for what is wrong, or will be, and say what to do about it.',
  details: ['Ends with 3 if a finding is serious. A healthy box has none.'],
  example: 'oncebox doctor --json',
  connects: true,
  raw: true,
  exits: [EXIT.unhealthy],
  output: object({
    ...{ code: string, severity: oneOf('serious', 'warning', 'note'), what: string, why: string },
    ...{ figures: record(anything), fix: string },
  }),
  async run({ out, options, connect }) {
    const { box } = await connect()
    const { fixOf } = await import('../shared/remedies.js')
    const findings = await box.admin.doctor()
    for (const finding of findings) {
      const { code, severity, what, why, figures } = finding
      const fix = fixOf(finding, options)
      if (out.json) {
        out.document({ code, severity, what, why, figures, fix })
        continue
      }
      out.line(paint(COLOURS[severity] ?? 'bold', severity.padEnd(8)), ' ', paint('bold', code), ' ', what)
      out.line('         ', why)
      // What reached no consumer has an empty one.
      const known = Object.entries(figures).filter(([, value]) => value !== '')
      const facts = known.map(([name, value]) => `${name} ${value}`)
      if (facts.length > 0) out.line('         ', paint('dim', facts.join(', ')))
      for (const line of fix.split('\n')) out.line('         ', paint('cyan', line))
    }
    if (findings.length === 0) out.note('nothing is wrong')
    return findings.some(({ severity }) => severity === 'serious') ? EXIT.unhealthy : EXIT.ok
  },
})

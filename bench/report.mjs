/** The figures as a table, for people. */
export function printTable({ command, commit, machine, versions, postgres, repeats, results }) {
  const lines = [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.os}`,
    `PostgreSQL ${postgres.server_version} (fsync ${postgres.fsync}, synchronous_commit ${postgres.synchronous_commit}), ` +
      `Node.js ${versions.node}, pg ${versions.pg}, oncebox ${versions.oncebox} at ${commit}`,
    `${command}: medians of ${repeats} (least–greatest), messages per second, CPU of Node.js + PostgreSQL and WAL per message`,
    '',
  ]
  const rows = [['shape', 'messages', 'rates', 'ratio', '', 'target', '']]
  for (const { name, messages, rates, checks } of results) {
    const all = Object.entries(rates).map(
      ([side, { median, min, max, others, cpu, wal }]) =>
        `${side} ${median}${min === undefined ? '' : ` (${min}–${max})`}${others ? ` (others ${others})` : ''}` +
        (cpu ? `, ${cpu.node} + ${cpu.postgres} µs, ${wal} B` : ''),
    )
    const height = Math.max(all.length, checks.length)
    for (let at = 0; at < height; at++) {
      const check = checks[at]
      rows.push([
        at === 0 ? name : '',
        at === 0 ? String(messages) : '',
        all[at] ?? '',
        check?.what ?? '',
        check ? check.ratio.toFixed(2) : '',
        check?.target ? `≥ ${check.target}` : '',
        check?.pass == null ? '' : check.pass ? 'pass' : 'FAIL',
      ])
    }
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  for (const row of rows)
    lines.push(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** What the demo shows: a live panel on a terminal, a line per 10 % elsewhere, and the audit at the end. */

const BAR_WIDTH = 40
const out = process.stderr
const live = Boolean(out.isTTY) && !process.env.CI

/** Progress goes to stderr, so that the result on stdout can be piped. */
export class Progress {
  #quiet
  #drawn = 0
  #told = 0

  constructor({ quiet }) {
    this.#quiet = quiet
  }

  say(line) {
    if (this.#quiet) return
    this.#erase()
    out.write(`${line}\n`)
  }

  show(state) {
    if (this.#quiet) return
    if (live) return this.#draw(panel(state))
    const tenth = Math.floor((10 * state.handled) / state.ofHandled)
    if (tenth <= this.#told) return
    this.#told = tenth
    const { orders, of, deliveries, handled, ofHandled, kills } = state
    out.write(
      `${String(tenth * 10).padStart(3)} %  orders ${orders}/${of}, deliveries ${deliveries}, ` +
        `handled ${handled}/${ofHandled}, kills ${kills}\n`,
    )
  }

  clear() {
    if (!this.#quiet) this.#erase()
  }

  #draw(lines) {
    this.#erase()
    const columns = out.columns || 80
    out.write(lines.map((line) => `${line.slice(0, columns - 1)}\n`).join(''))
    this.#drawn = lines.length
  }

  #erase() {
    if (this.#drawn > 0) out.write(`\x1b[${this.#drawn}A\x1b[0J`)
    this.#drawn = 0
  }
}

function panel({ orders, of, deliveries, handled, ofHandled, kills, naive, oncebox }) {
  return [
    `orders      ${bar(orders / of)}  ${orders} of ${of}`,
    `handled     ${bar(handled / ofHandled)}  ${handled} of ${ofHandled}`,
    `deliveries  ${deliveries}`,
    `kills       ${kills}`,
    `naive       ${effects(naive)}`,
    `oncebox     ${effects(oncebox)}`,
  ]
}

function bar(share) {
  const full = Math.round(Math.min(1, share) * BAR_WIDTH)
  return '█'.repeat(full) + '░'.repeat(BAR_WIDTH - full)
}

function effects({ reservations, charges, doubleReservations, doubleCharges }) {
  return `${reservations} reservations, ${charges} charges, ${doubleReservations + doubleCharges} double`
}

/** The audit as a table for people. */
export function auditTable(report) {
  const { naive, oncebox } = report
  const paint = colours(process.stdout)
  const rows = [
    ['orders', naive.orders, oncebox.orders],
    ['deliveries', naive.deliveries, oncebox.deliveries],
    ['  of these duplicates', naive.duplicates, oncebox.duplicates],
    ['kills', report.kills, report.kills],
    ['double reservations', bad(naive.doubleReservations), bad(oncebox.doubleReservations)],
    ['double charges', bad(naive.doubleCharges), bad(oncebox.doubleCharges)],
    ['lost reservations', bad(naive.lostReservations), bad(oncebox.lostReservations)],
    ['lost payments', bad(naive.lostPayments), bad(oncebox.lostPayments)],
    ['stock off by, units', bad(naive.stockOffBy), bad(oncebox.stockOffBy)],
    ['customers overcharged', bad(naive.overchargedCents, money), bad(oncebox.overchargedCents, money)],
  ]
  const line = (label, left, right) => `  ${label.padEnd(24)}${left}${right}`
  const cell = (value) => {
    if (typeof value !== 'object') return String(value).padStart(12)
    const text = value.text.padStart(12)
    return value.number === 0 ? paint('32', text) : paint('31', text)
  }
  return [
    line('', 'naive'.padStart(12), 'oncebox'.padStart(12)),
    ...rows.map(([label, left, right]) => line(label, cell(left), cell(right))),
  ].join('\n')
}

/** A number that should be zero. */
function bad(number, format = String) {
  return { number, text: format(number) }
}

function money(cents) {
  return `$${(cents / 100).toFixed(2)}`
}

function colours(stream) {
  const { NO_COLOR, FORCE_COLOR } = process.env
  const wanted = FORCE_COLOR ? FORCE_COLOR !== '0' : Boolean(stream.isTTY) && !NO_COLOR
  return (code, text) => (wanted ? `\x1b[${code}m${text}\x1b[0m` : text)
}

/** The cost of one run of a function: the best of several rounds, since other work on the machine only adds to it. */
export type Cost = { bestUs: number; middleUs: number }

const roundMs = 15
const rounds = 20

/**
 * Runs a function until it is warm, then so often that a round takes some 15 ms.
 * @param run returns a value that depends on its work, or the engine would leave the work out
 */
export function measureCost(run: () => number): Cost {
  let sum = 0
  const take = (times: number) => {
    const start = process.hrtime.bigint()
    for (let i = 0; i < times; i++) sum += run()
    return Number(process.hrtime.bigint() - start) / 1_000
  }
  let times = 1
  for (let us = take(1); us < roundMs * 1_000; us = take(times))
    times = Math.ceil(times * Math.max(1.2, (roundMs * 1_000) / us))
  const costs = Array.from({ length: rounds }, () => take(times) / times).sort((a, b) => a - b)
  if (Number.isNaN(sum)) throw new Error('the measured function returned no number')
  return { bestUs: costs[0]!, middleUs: costs[rounds / 2]! }
}

/** One line of a table. For work with parts, such as events or bytes, it has the cost of each part. */
export function formatCost(name: string, { bestUs, middleUs }: Cost, parts?: { count: number; unit: string }): string {
  const figure = (us: number) => us.toFixed(us < 10 ? 2 : 1).padStart(9)
  const eachNs = (bestUs * 1_000) / (parts?.count ?? 1)
  const each = parts && `  ${eachNs.toFixed(eachNs < 10 ? 2 : 0)} ns/${parts.unit}`
  return `${name.padEnd(52)}${figure(bestUs)} µs${figure(middleUs)} median${each ?? ''}`
}

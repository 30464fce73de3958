import type { OperatorTurn, Turn } from './request.ts'

/** Splits a conversation. The leading operator turns are the preamble; all other turns keep their places (R-SYS 1). */
export function splitPreamble(all: readonly Turn[]): { preamble: OperatorTurn[]; turns: Turn[] } {
  const first = all.findIndex((turn) => turn.by !== 'operator')
  const size = first < 0 ? all.length : first
  return { preamble: all.slice(0, size) as OperatorTurn[], turns: all.slice(size) }
}

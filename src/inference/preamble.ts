import type { OperatorTurn, Turn } from './request.ts'

/**
 * A conversation and what its operator says before it: the leading operator turns are preamble, all others keep their
 * place (R-SYS 1).
 */
export function splitPreamble(all: readonly Turn[]): { preamble: OperatorTurn[]; turns: Turn[] } {
  const first = all.findIndex((turn) => turn.by !== 'operator')
  const size = first < 0 ? all.length : first
  return { preamble: all.slice(0, size) as OperatorTurn[], turns: all.slice(size) }
}

import { isBlank } from '../bytes/json-source.ts'
import type {
  InferenceRequest,
  ModelPart,
  ModelTurn,
  OperatorTurn,
  ToolResultPart,
  Turn,
  UserPart,
  UserTurn,
} from './request.ts'

/** Splits a conversation. The leading operator turns are the preamble; all other turns keep their places (R-SYS 1). */
export function splitPreamble(all: readonly Turn[]): { preamble: OperatorTurn[]; turns: Turn[] } {
  const first = all.findIndex((turn) => turn.by !== 'operator')
  const size = first < 0 ? all.length : first
  return { preamble: all.slice(0, size) as OperatorTurn[], turns: all.slice(size) }
}

/**
 * Puts a conversation into the order that every wire accepts (R-PAIR, R-SYS 5 and 6). The results of a turn's calls
 * come directly after that turn, in the order of the calls. User and operator text between these results is moved after
 * them. Blank operator text is dropped. Results without a call, and calls without a result, keep their places (ruling
 * T13). Normalising twice changes nothing.
 */
export function normalise(request: InferenceRequest): InferenceRequest {
  const preamble = request.preamble.map(withoutBlankTexts).filter((turn) => turn.texts.length > 0)
  const turns: Turn[] = []
  // The call ids of the newest model turn, if its results are not in their final order yet. Otherwise empty.
  let calls = noCalls
  let following: Turn[] = []
  const said = joinThoughts(
    joinCalls(request.turns.every(saysSomething) ? request.turns : request.turns.filter(saysSomething)),
  )
  for (let i = 0; i < said.length; i++) {
    const turn = said[i]!
    // A turn that is only reasoning has no calls, so it does not end the wait for results of earlier calls (ruling
    // T21).
    if (turn.by !== 'model' || isReasoningOnly(turn)) {
      const kept = turn.by === 'operator' ? withoutBlankTexts(turn) : turn
      if (kept.by === 'operator' && kept.texts.length === 0) continue
      if (calls.length === 0) turns.push(kept)
      else following.push(kept)
      continue
    }
    if (calls.length > 0) for (const ordered of orderResults(calls, following)) turns.push(ordered)
    turns.push(turn)
    const results = said[i + 1]
    const next = said[i + 2]
    // The usual case: the next turn has exactly the results of this turn's calls, in the right order.
    if (results?.by === 'user' && next?.by !== 'operator' && areAnswered(turn, results)) {
      calls = noCalls
      turns.push(next?.by === 'user' ? { by: 'user', parts: [...results.parts, ...next.parts] } : results)
      i += next?.by === 'user' ? 2 : 1
    } else {
      calls = turn.parts.flatMap((part) => (part.type === 'tool_call' ? part.callId : noCalls))
      following = []
    }
  }
  if (calls.length > 0) for (const ordered of orderResults(calls, following)) turns.push(ordered)
  return { ...request, preamble, turns }
}

/**
 * Joins model turns that are separated only by operator text, if they are parts of one answer. Turns are parts of one
 * answer if a result after the last turn belongs to a call of the first. The operator text is moved after the joined
 * turn (R-SYS 5).
 */
function joinCalls(turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some(({ by }, i) => by === 'model' && turns[i + 1]?.by === 'operator')) return turns
  const joined: Turn[] = []
  for (let i = 0; i < turns.length; ) {
    const run: Turn[] = []
    const behind: Turn[] = []
    for (; i < turns.length && turns[i]!.by !== 'user'; i++) run.push(turns[i]!)
    for (; i < turns.length && turns[i]!.by !== 'model'; i++) behind.push(turns[i]!)
    const answered = new Set(behind.flatMap((turn) => (turn.by === 'user' ? turn.parts.map(callIdOf) : [])))
    const first = run.findIndex(
      (turn) =>
        turn.by === 'model' && turn.parts.some((part) => part.type === 'tool_call' && answered.has(part.callId)),
    )
    const last = run.findLastIndex((turn) => turn.by === 'model' && !isReasoningOnly(turn))
    const answer = first < 0 ? [] : run.slice(first, last + 1)
    const operators = answer.filter(({ by }) => by === 'operator')
    if (operators.length > 0) {
      const parts = answer.flatMap((turn) => (turn.by === 'model' ? turn.parts : []))
      run.splice(first, answer.length, { by: 'model', parts }, ...operators)
    }
    for (const turn of run) joined.push(turn)
    for (const turn of behind) joined.push(turn)
  }
  return joined
}

function callIdOf(part: UserPart): string | undefined {
  return part.type === 'tool_result' ? part.callId : undefined
}

/**
 * Joins a model turn that ends in reasoning with the next model turn, if only tool results stand between them. No model
 * ends its answer in reasoning, so both turns are parts of one answer (ruling Y2). Some clients run a call before the
 * answer is complete. The results of the joined turn's calls then follow the joined turn. All other results precede
 * it.
 */
function joinThoughts(turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some((turn, i) => turn.by === 'model' && endsInReasoning(turn.parts) && isOnlyResults(turns[i + 1])))
    return turns
  const joined: Turn[] = []
  for (let i = 0; i < turns.length; ) {
    const from = i
    const turn = turns[i++]!
    const [parts, results]: [ModelPart[], UserPart[]] = [turn.by === 'model' ? [...turn.parts] : [], []]
    while (endsInReasoning(parts)) {
      let next = i
      while (isOnlyResults(turns[next])) next++
      const more = turns[next]
      if (more?.by !== 'model') break
      for (; i < next; i++) for (const part of (turns[i] as UserTurn).parts) results.push(part)
      for (const part of more.parts) parts.push(part)
      i++
    }
    if (results.length === 0) {
      for (let at = from; at < i; at++) joined.push(turns[at]!)
      continue
    }
    const calls = new Set(parts.flatMap((part) => (part.type === 'tool_call' ? part.callId : [])))
    const isOwn = (part: UserPart) => part.type === 'tool_result' && calls.has(part.callId)
    const [own, others] = [results.filter(isOwn), results.filter((part) => !isOwn(part))]
    if (others.length > 0) joined.push({ by: 'user', parts: others })
    joined.push({ by: 'model', parts })
    if (own.length > 0) joined.push({ by: 'user', parts: own })
  }
  return joined
}

function endsInReasoning(parts: readonly ModelPart[]): boolean {
  return parts.at(-1)?.type === 'reasoning'
}

function isOnlyResults(turn: Turn | undefined): boolean {
  return turn?.by === 'user' && turn.parts.every(({ type }) => type === 'tool_result')
}

const noCalls: readonly string[] = []

/**
 * Whether a turn is kept. A user turn without parts is left out, because it separates results from their calls and no
 * wire can express it (R-EMPTY).
 */
function saysSomething(turn: Turn): boolean {
  return turn.by !== 'user' || turn.parts.length > 0
}

/** Whether a user turn has exactly the results of a model turn's calls, in the order of the calls. */
function areAnswered({ parts }: ModelTurn, results: UserTurn): boolean {
  let count = 0
  for (const call of parts) {
    if (call.type !== 'tool_call') continue
    const result = results.parts[count++]
    if (result?.type !== 'tool_result' || result.callId !== call.callId) return false
  }
  return count > 0 && count === results.parts.length
}

function withoutBlankTexts(turn: OperatorTurn): OperatorTurn {
  return turn.texts.some(({ text }) => isBlank(text))
    ? { ...turn, texts: turn.texts.filter(({ text }) => !isBlank(text)) }
    : turn
}

function isReasoningOnly({ parts }: ModelTurn): boolean {
  return parts.length > 0 && parts.every((part) => part.type === 'reasoning')
}

/**
 * Puts the results of a model turn's calls first among the turns that follow it.
 * @param calls the ids of the calls. @param following the turns up to the next model turn
 */
function orderResults(calls: readonly string[], following: Turn[]): Turn[] {
  const [begun, next, ...later] = following
  if (begun?.by === 'user' && beginsWithResults(begun.parts, calls)) {
    if (begun.parts.length > calls.length || next?.by !== 'user') return following
    return [{ by: 'user', parts: [...begun.parts, ...next.parts] }, ...later]
  }
  const results = takeResults(calls, following)
  if (results.size === 0) return following
  const found = new Set<UserPart>(results)
  const rest: Turn[] = []
  for (const turn of following) {
    if (turn.by !== 'user') {
      rest.push(turn)
      continue
    }
    const parts = turn.parts.filter((part) => !found.has(part))
    if (parts.length > 0) rest.push({ ...turn, parts })
  }
  const [first, ...others] = rest
  if (first?.by === 'user') return [{ ...first, parts: [...results, ...first.parts] }, ...others]
  return [{ by: 'user', parts: [...results] }, ...rest]
}

function beginsWithResults(parts: readonly UserPart[], calls: readonly string[]): boolean {
  return calls.every((call, i) => {
    const part = parts[i]
    return part?.type === 'tool_result' && part.callId === call
  })
}

/**
 * Finds the results of calls, in the order of the calls. If several calls have the same id, they get the results with
 * this id in order: the first call gets the first result (R-PAIR 3).
 */
function takeResults(calls: readonly string[], following: Turn[]): Set<ToolResultPart> {
  const waiting = new Map<string, ToolResultPart[]>()
  for (const turn of following) {
    if (turn.by !== 'user') continue
    for (const part of turn.parts) {
      if (part.type !== 'tool_result') continue
      const queue = waiting.get(part.callId)
      if (queue) queue.push(part)
      else waiting.set(part.callId, [part])
    }
  }
  for (const queue of waiting.values()) queue.reverse()
  const taken = new Set<ToolResultPart>()
  for (const callId of calls) {
    const result = waiting.get(callId)?.pop()
    if (result) taken.add(result)
  }
  return taken
}

import { joinTexts } from '../bytes/json-source.ts'
import type { ModelPart, OperatorText, OperatorTurn, TextPart, Turn, UserPart } from './request.ts'

/**
 * Moves operator text in the middle of a conversation, for a wire that does not accept it there (R-SYS 3 and 4). The
 * text becomes marked text of the user turn directly before it, or else of the user turn directly after it. Without
 * either, it becomes a turn of its own. Later requests of the growing conversation get the text at the same place
 * (rulings T8, T15).
 * @param mayStay whether the wire accepts operator text between two turns
 */
export function foldOperators(
  turns: readonly Turn[],
  mayStay: (before: Turn | undefined, after: Turn | undefined) => boolean,
): Turn[] {
  const folded: Turn[] = []
  for (let i = 0; i < turns.length; i++) {
    const turn = turns[i]!
    if (turn.by !== 'operator') {
      folded.push(turn)
      continue
    }
    // Consecutive operator turns become one turn.
    const run: OperatorTurn = { ...turn, texts: [...turn.texts] }
    for (let next = turns[i + 1]; next?.by === 'operator'; next = turns[i + 1]) {
      for (const text of next.texts) run.texts.push(text)
      i++
    }
    const before = folded.at(-1)
    const after = turns[i + 1]
    if (mayStay(before, after)) {
      folded.push(run)
      continue
    }
    const reminders = run.texts.map(reminder)
    if (before?.by === 'user') {
      folded[folded.length - 1] = { by: 'user', parts: [...before.parts, ...reminders] }
    } else if (after?.by === 'user') {
      const results = after.parts.findIndex((part) => part.type !== 'tool_result')
      const head = results < 0 ? after.parts.length : results
      folded.push({ by: 'user', parts: [...after.parts.slice(0, head), ...reminders, ...after.parts.slice(head)] })
      i++
    } else {
      folded.push({ by: 'user', parts: reminders })
    }
  }
  return folded
}

function reminder({ text }: OperatorText): TextPart {
  return { type: 'text', text: joinTexts(['<system-reminder>\n', text, '\n</system-reminder>'], '') }
}

/** Merges neighbouring turns of the same side, for a wire on which sides must alternate (R-PAIR 2). */
export function mergeNeighbours(turns: readonly Turn[]): Turn[] {
  const merged: Turn[] = []
  // The last turn of `merged`, if this function created it. Such a turn may be changed, but not the turns of the
  // caller.
  let copy: Turn | undefined
  for (const turn of turns) {
    const last = merged.at(-1)
    if (turn.by === 'operator' || last?.by !== turn.by) {
      merged.push(turn)
      continue
    }
    const parts: (ModelPart | UserPart)[] = last === copy ? last.parts : [...last.parts]
    for (const part of turn.parts) parts.push(part)
    if (last !== copy) merged[merged.length - 1] = copy = { ...last, parts } as Turn
  }
  return merged
}

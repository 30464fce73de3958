import { hex10, sha256Base62 } from '../ids.ts'
import type { ToolCallPart, Turn } from './request.ts'

/**
 * Makes an id from the request id, so that stream and JSON agree and encoding twice gives the same id (R-ID). An
 * upstream's own ids are never shown. They reveal the hosting, have other prefixes, and may be blank or repeat.
 * @param prefix the beginning of such ids on the client's wire
 * @param part distinguishes the ids of one answer: a block's index, or '' for the answer itself
 */
export function mintId(prefix: string, requestId: string, part: number | ''): string {
  // `join` gives a flat string. With a concatenated string, JSON.stringify would take a slower path for the whole
  // answer.
  return [prefix, sha256Base62(`${requestId}/${prefix}${part}`, 24)].join('')
}

type CallIdStyle = 'free' | 're64' | 'len40' | 'alnum9' | 'fn_index'

const idLengthMax = { re64: 64, len40: 40 } as const

/**
 * Returns the same turns with call ids that an upstream accepts. A call and its result are renamed together (R-ID).
 * Ids may repeat in the client's history, so each call gets a unique id. A result belongs to the nearest earlier call
 * with its id that has no result yet (R-PAIR 3). Ids depend only on the order of the conversation, so the gateway
 * remembers nothing between requests.
 * @param upstreamName the upstream's name for the tool of a call; some id styles contain this name
 */
export function renameCallIds(
  turns: readonly Turn[],
  style: CallIdStyle,
  upstreamName: (call: ToolCallPart) => string,
): readonly Turn[] {
  if (style !== 'fn_index' && areTaken(turns, style)) return turns
  const used = new Set<string>()
  // The calls that wait for a result, by client id. The calls of one turn form a group, and the latest group comes
  // last. In a group, `next` is the index of the first call without a result.
  const waiting = new Map<string, { turn: number; ids: string[]; next: number }[]>()
  const latest = new Map<string, string>()
  const occurrences = new Map<string, number>()
  let running = 0
  return turns.map((turn, index): Turn => {
    if (turn.by === 'model') {
      const parts = turn.parts.map((part) =>
        part.type === 'tool_call' ? { ...part, callId: open(part.callId, index, upstreamName(part)) } : part,
      )
      return { ...turn, parts }
    }
    if (turn.by === 'operator') return turn
    const parts = turn.parts.map((part) =>
      part.type === 'tool_result' ? { ...part, callId: answer(part.callId) } : part,
    )
    return { ...turn, parts }
  })

  function open(original: string, turn: number, name: string): string {
    const id = mint(original, name)
    const groups = waiting.get(original) ?? []
    const group = groups.at(-1)
    if (group?.turn === turn) group.ids.push(id)
    else groups.push({ turn, ids: [id], next: 0 })
    waiting.set(original, groups)
    latest.set(original, id)
    return id
  }

  function answer(original: string): string {
    const groups = waiting.get(original)
    const nearest = groups?.at(-1)
    if (!nearest) {
      // A second result of the same call keeps the call's id, so that the model sees the mistake. A result without a
      // call gets a new id.
      const id = latest.get(original) ?? mint(original, 'unknown')
      latest.set(original, id)
      return id
    }
    const id = nearest.ids[nearest.next++]!
    if (nearest.next === nearest.ids.length) groups?.pop()
    return id
  }

  function mint(original: string, name: string): string {
    const occurrence = occurrences.get(original) ?? 0
    occurrences.set(original, occurrence + 1)
    let id = style === 'fn_index' ? `functions.${name}:${running++}` : fit(original, occurrence, style)
    for (let retry = 1; used.has(id); retry++) {
      id = style === 'fn_index' ? `functions.${name}:${running++}` : alias(original, `${occurrence}.${retry}`, style)
    }
    used.add(id)
    return id
  }
}

/** Whether all ids can stay: no two calls share an id, and each result follows a call with its id. */
function areTaken(turns: readonly Turn[], style: Exclude<CallIdStyle, 'fn_index'>): boolean {
  const calls = new Set<string>()
  for (const turn of turns) {
    if (turn.by === 'operator') continue
    for (const part of turn.parts) {
      if (part.type !== 'tool_call' && part.type !== 'tool_result') continue
      const { callId } = part
      if (calls.has(callId) !== (part.type === 'tool_result') || !suits(callId, style)) return false
      calls.add(callId)
    }
  }
  return true
}

function fit(original: string, occurrence: number, style: Exclude<CallIdStyle, 'fn_index'>): string {
  return occurrence === 0 && suits(original, style) ? original : alias(original, String(occurrence), style)
}

function suits(id: string, style: Exclude<CallIdStyle, 'fn_index'>): boolean {
  if (style === 'free') return id !== ''
  if (style === 'alnum9') return /^[A-Za-z0-9]{9}$/.test(id)
  return id !== '' && id.length <= idLengthMax[style] && !/[^A-Za-z0-9_-]/.test(id)
}

function alias(original: string, occurrence: string, style: Exclude<CallIdStyle, 'fn_index'>): string {
  const seed = `${original}\u0000${occurrence}`
  if (style === 'alnum9') return sha256Base62(seed, 9)
  const lengthMax = style === 'free' ? 64 : idLengthMax[style]
  return `${original.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, lengthMax - 11)}_${hex10(seed)}`
}

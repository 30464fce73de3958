import { isBlank, joinTexts, sent, type Text } from '../../bytes/json-source.ts'
import type { Profile } from '../../catalog/profile.ts'
import { textToBase64, writeDataUrl } from '../../inference/data-url.ts'
import type {
  DocumentPart,
  ImagePart,
  InferenceRequest,
  ModelPart,
  OperatorTurn,
  TextPart,
  ToolResultPart,
  Turn,
  UserTurn,
} from '../../inference/request.ts'
import { askSomething, type Prepared } from '../requests/prepare.ts'
import { failedParts, failedText, inlineText, refuseFiles, refuseImages } from '../requests/stand-ins.ts'

type InputItem = Record<string, unknown>

/**
 * Encodes `instructions` and `input`. If the client's wire distinguishes system from developer text, the operator's
 * texts before the conversation stay messages with their role. Otherwise these texts become `instructions` (R-SYS 2,
 * 3). No item has an id, since this wire refuses ids that it did not create (R-ID).
 */
export function encodeInput(
  request: InferenceRequest,
  prepared: Prepared,
  profile: Profile,
): { instructions?: unknown; input: InputItem[] } {
  const input: InputItem[] = []
  const encode = createTurnEncoder(request, prepared, profile, input)
  if (request.tellsLevels) {
    for (const turn of [...prepared.preamble, ...prepared.turns]) encode(turn)
    return { input }
  }
  for (const turn of prepared.turns) encode(turn)
  let { preamble } = prepared
  if (input.length === 0) {
    // The wire refuses an empty input.
    const asked = askSomething(prepared, [])
    preamble = asked.preamble
    for (const turn of asked.turns) encode(turn)
  }
  if (preamble.length === 0) return { input }
  const texts = preamble.flatMap((turn) => turn.texts.map((text) => text.text))
  return { instructions: sent(joinTexts(texts, '\n\n')), input }
}

/** Makes the function that encodes one turn. @param input receives the items of each turn */
function createTurnEncoder(
  request: InferenceRequest,
  prepared: Prepared,
  profile: Profile,
  input: InputItem[],
): (turn: Turn) => void {
  return (turn) => {
    if (turn.by === 'operator') input.push(encodeOperator(turn))
    else if (turn.by === 'user') encodeUser(turn)
    else for (const part of turn.parts) encodeModelPart(part)
  }

  /**
   * Consecutive parts form one message item. A tool result between parts starts a new message item (translation 2.3).
   */
  function encodeUser(turn: UserTurn): void {
    let run: unknown[] | undefined
    for (const part of turn.parts) {
      if (part.type === 'tool_result') {
        run = undefined
        input.push(encodeResult(part))
      } else if (part.type !== 'text' || part.text) {
        const encoded = encodePart(part)
        if (run) run.push(encoded)
        else {
          run = [encoded]
          input.push({ type: 'message', role: 'user', content: run })
        }
      }
    }
  }

  function encodeModelPart(part: ModelPart): void {
    switch (part.type) {
      case 'tool_call': {
        const args = isBlank(part.argumentsText) ? '{}' : part.argumentsText
        input.push({ type: 'function_call', call_id: part.callId, name: part.name, arguments: sent(args) })
        return
      }
      case 'reasoning':
        prepared.losses.add(prepared.conversationField, 'dropped', 'reasoning without the proof its model wants')
        return
      case 'text':
      case 'refusal':
        // The text is sent as a string. In a list of parts, it would need the form and the ids of this wire's answers
        // (ruling T25).
        if (part.text) input.push({ type: 'message', role: 'assistant', content: sent(part.text) })
    }
  }

  function encodeOperator(turn: OperatorTurn): InputItem {
    const role = request.tellsLevels ? turn.level : 'developer'
    const content = turn.texts.map((text) => ({ type: 'input_text', text: sent(text.text) }))
    return { type: 'message', role: profile.developerRole ? role : 'system', content }
  }

  function encodeResult(result: ToolResultPart): InputItem {
    const [first] = result.parts
    const text = result.parts.length === 1 && first?.type === 'text' ? failedText(result, first.text) : undefined
    if (text !== undefined) return { type: 'function_call_output', call_id: result.callId, output: sent(text) }
    const item = { type: 'function_call_output', call_id: result.callId }
    const texts: Text[] = []
    for (const part of result.parts)
      if (part.type === 'text') texts.push(part.text)
      else if (part.type === 'document' && part.text !== undefined) texts.push(inlineText(part))
    if (texts.length === result.parts.length)
      return { ...item, output: sent(failedText(result, joinTexts(texts, '\n'))) }
    return { ...item, output: failedParts(result).map(encodePart) }
  }

  function encodePart(part: TextPart | ImagePart | DocumentPart): unknown {
    if (part.type === 'text') return { type: 'input_text', text: sent(part.text) }
    if (part.type === 'image') {
      refuseImages(profile, part)
      return { type: 'input_image', image_url: writeDataUrl(part.mime, part.base64), detail: part.detail ?? 'auto' }
    }
    if (part.text !== undefined && !(part.title && profile.files)) return { type: 'input_text', text: inlineText(part) }
    refuseFiles(profile, part)
    const base64 = part.base64 ?? textToBase64(part.text ?? '')
    return { type: 'input_file', filename: part.title ?? 'document', file_data: writeDataUrl(part.mime, base64) }
  }
}

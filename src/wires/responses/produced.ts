import { objectsOf, stringOf } from '../answers/read-answer.ts'

/** The text that the hub puts between the parts of a reasoning that came in several. */
export const partBreak = '\n\n'

/**
 * The texts of output items, in order (ruling C10): messages, reasoning, and names and arguments of calls, hosted tools
 * included. Of a summary and the raw reasoning the first with text counts. Sealed and binary output is no text.
 */
export function producedTexts(output: unknown): string[] {
  return objectsOf(output)
    .flatMap(textsOfItem)
    .filter((text) => text !== '')
}

function textsOfItem(item: Record<string, unknown>): string[] {
  if (item['type'] === 'message') {
    return objectsOf(item['content']).map((part) => stringOf(part['text']) ?? stringOf(part['refusal']) ?? '')
  }
  if (item['type'] === 'reasoning') {
    const parts = [item['summary'], item['content']].map((list) =>
      objectsOf(list)
        .map((part) => stringOf(part['text']) ?? '')
        .filter((text) => text !== ''),
    )
    return [(parts.find((texts) => texts.length > 0) ?? []).join(partBreak)]
  }
  return [
    stringOf(item['name']) ?? '',
    stringOf(item['arguments']) ?? stringOf(item['input']) ?? stringOf(item['code']) ?? '',
  ]
}

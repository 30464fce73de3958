import { asObject, type JsonObject } from '../../bytes/json.ts'

/** Signs that an event which begins an item, or a part of one, may hold content already. */
const filled: Record<string, RegExp> = {
  'response.output_item.added': /"(?:arguments|input)"\s*:\s*(?:"[^"]|\{)|"(?:content|summary)"\s*:\s*\[\s*[^\s\]]/,
  'response.content_part.added': /"text"\s*:\s*"[^"]/,
  'response.reasoning_summary_part.added': /"text"\s*:\s*"[^"]/,
}

/** The members of an item, or a part, that its deltas fill, by its type, as they are at first. */
const firstValues: Record<string, Readonly<Record<string, string>>> = {
  message: { content: '[]' },
  reasoning: { content: '[]', summary: '[]' },
  function_call: { arguments: '""' },
  custom_tool_call: { input: '""' },
  output_text: { text: '""' },
  reasoning_text: { text: '""' },
  summary_text: { text: '""' },
}

/** Whether an event begins an item or a part, and holds content that its deltas will bring (ruling Y3). */
export function isFilledStart(name: string, frame: string): boolean {
  return filled[name]?.test(frame) === true
}

/**
 * The members that such an event has to have instead: clients empty what begins, or read its content twice, and the
 * vendor's SDK throws. The events that follow say all of it, the last ones once more.
 * @returns the path of the item or part, and its new members
 */
export function emptiedStart(event: JsonObject): { path: string[]; members: Map<string, string> } {
  const path = 'item' in event ? ['item'] : ['part']
  const begun = asObject(event[path[0]!]) ?? {}
  const first = Object.entries(firstValues[`${begun['type']}`] ?? {})
  return { path, members: new Map(first.filter(([name]) => begun[name] != null)) }
}

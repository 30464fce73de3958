import type { OfferedTool, Prompt } from './prompt.ts'
import { sampleSchema } from './schema-sample.ts'

export type AskedCall = { tool: OfferedTool; arguments: string }

/** More are never made at once, whatever a text mentions. */
const callsMax = 8

/** Longer arguments within a text are not recognised. */
const argumentCharactersMax = 10_000

const verb = /\b(call|use|using|run|invoke)\b/i
const anyTool = /\b(?:call|use|run|invoke)\s+(?:the|a|your)\s+tool\b/i
const everyTool = /\b(?:call|use|run|invoke)\s+(?:the|all|your|all the)\s+tools\b/i

/**
 * The calls that a model would make: the forced one, or those the user's last text asks for ("call get_weather",
 * "use the tool"), in the order they are mentioned. A JSON object behind a name is taken as the arguments, to the letter.
 */
export function findAskedCalls(prompt: Prompt, userText: string): AskedCall[] {
  if (prompt.choice.mode === 'none' || prompt.tools.length === 0) return []
  const forced = prompt.tools.find((tool) => tool.name === prompt.choice.name)
  const tools = forced ? [forced] : prompt.tools
  const asked = verb.test(userText) || prompt.choice.mode === 'required' ? mentioned(tools, userText) : []
  if (asked.length === 0 && everyTool.test(userText)) asked.push(...tools.map(sampled))
  if (asked.length === 0 && (anyTool.test(userText) || prompt.choice.mode === 'required'))
    asked.push(sampled(tools[0]!))
  return asked.slice(0, prompt.isParallel ? callsMax : 1)
}

function mentioned(tools: OfferedTool[], text: string): AskedCall[] {
  const found: { at: number; call: AskedCall }[] = []
  for (const tool of tools) {
    const name = tool.name.replaceAll(/[^A-Za-z0-9_]/g, '\\$&')
    for (const match of text.matchAll(new RegExp(`(?<![A-Za-z0-9_-])${name}(?![A-Za-z0-9_-])[\`'"]?`, 'g'))) {
      const given = objectAt(text, match.index + match[0].length)
      found.push({ at: match.index, call: given === undefined ? sampled(tool) : { tool, arguments: given } })
    }
  }
  // A tool that is mentioned twice is called twice only if arguments were given.
  const seen = new Set<string>()
  const calls: AskedCall[] = []
  for (const { call } of found.sort((a, b) => a.at - b.at)) {
    const key = `${call.tool.namespace ?? ''} ${call.tool.name} ${call.arguments}`
    if (!seen.has(key)) calls.push(call)
    seen.add(key)
  }
  return calls
}

function sampled(tool: OfferedTool): AskedCall {
  return { tool, arguments: JSON.stringify(sampleSchema(tool.schema)) }
}

/** The source of a JSON object that begins at the index, white space, a colon or "with" before it skipped. */
function objectAt(text: string, index: number): string | undefined {
  const start = index + (/^(?:\s|:|=|\(|with\b|arguments\b)*/.exec(text.slice(index, index + 40))?.[0].length ?? 0)
  if (text[start] !== '{') return undefined
  // Bounded, since each brace costs a parse of all that stands before it.
  const last = start + argumentCharactersMax
  for (let end = text.indexOf('}', start); end >= 0 && end < last; end = text.indexOf('}', end + 1)) {
    const source = text.slice(start, end + 1)
    try {
      JSON.parse(source)
      return source
    } catch {
      // This brace belongs to an inner object or to a string: try the next one.
    }
  }
  return undefined
}

import type { OfferedTool, Prompt } from './prompt.ts'
import { sampleSchema } from './schema-sample.ts'

type AskedCall = { tool: OfferedTool; arguments: string }

/** The most calls in one answer. */
const callsMax = 8

/** The longest arguments that are recognized in a text. */
const argumentCharactersMax = 10_000

const verb = /\b(call|use|using|run|invoke)\b/i
const anyTool = /\b(?:call|use|run|invoke)\s+(?:the|a|your)\s+tool\b/i
const everyTool = /\b(?:call|use|run|invoke)\s+(?:the|all|your|all the)\s+tools\b/i

/**
 * Returns the calls that a model would make. They call the forced tool, or the tools that the user's last text requests
 * ("call get_weather", "use the tool"). A JSON object after a tool's name becomes the arguments, unchanged.
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
  // Two mentions of a tool make two calls only if their arguments differ.
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

/** Returns the JSON object at the index. Spaces and `:`, `=`, `(`, "with" and "arguments" before it are skipped. */
function objectAt(text: string, index: number): string | undefined {
  const start = index + (/^(?:\s|:|=|\(|with\b|arguments\b)*/.exec(text.slice(index, index + 40))?.[0].length ?? 0)
  if (text[start] !== '{') return undefined
  // The length is limited, because each brace costs a parse of all text before it.
  const last = start + argumentCharactersMax
  for (let end = text.indexOf('}', start); end >= 0 && end < last; end = text.indexOf('}', end + 1)) {
    const source = text.slice(start, end + 1)
    try {
      JSON.parse(source)
      return source
    } catch {
      // This brace belongs to an inner object or to a string, so the next brace is tried.
    }
  }
  return undefined
}

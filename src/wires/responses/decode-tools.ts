import { joinTexts, type Text } from '../../bytes/json-source.ts'
import type { Tool } from '../../inference/request.ts'
import { plainNamespace, readTool } from '../requests/decode-tools.ts'
import {
  type Body,
  type Json,
  optionalText,
  readArray,
  readEach,
  readObject,
  readString,
} from '../requests/read-value.ts'
import { refuse } from '../requests/refusals.ts'

/** The most characters of namespace descriptions in a request. A description counts for each tool of its namespace. */
const describedMax = 1_000_000
const described = new WeakMap<Body, number>()

/**
 * Reads function tools and the members of namespaces, in order (R-GROUP).
 * @param at `tools`, or the place in `input` of an `additional_tools` item
 */
export function readTools(entries: unknown, at: string, body: Body): Tool[] {
  const tools: Tool[] = []
  const list = readArray(entries, at)
  for (let i = 0; i < list.length; i++) {
    const place = `${at}[${i}]`
    const tool = readObject(list[i], place)
    if (tool['type'] !== 'namespace') tools.push(readTool(tool, place, body, 'beside'))
    else for (const member of readMembers(tool, place, body)) tools.push(member)
  }
  return tools
}

function readMembers(group: Json, at: string, body: Body): Tool[] {
  const name = readString(group['name'], `${at}.name`)
  const about = optionalText(body, group['description'], `${at}.description`)
  const count = Array.isArray(group['tools']) ? group['tools'].length : 0
  const sum = (described.get(body) ?? 0) + (about ?? '').toString().length * count
  described.set(body, sum)
  if (sum > describedMax)
    refuse(`${at}.description`, `it stands with each of its tools: for ${count} it is too long.`, 'tools')
  return readEach(group['tools'], `${at}.tools`, (entry, place) => {
    const member = readTool(readObject(entry, place), place, body, 'beside')
    const texts = [about, member.description].filter((text): text is Text => text !== undefined && text !== '')
    const description = texts.length > 0 ? joinTexts(texts, '\n\n') : undefined
    return name === plainNamespace ? { ...member, description } : { ...member, description, namespace: name }
  })
}

import type { Tool } from '../../inference/request.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalRawObject,
  readArray,
  readBoolean,
  readObject,
  readString,
  refusals,
  refuse,
} from '../reading.ts'

/** The namespace whose members clients know by their bare names: it is no namespace (R-GROUP). */
export const plainNamespace = 'functions'

/**
 * Function tools and the members of namespaces, in order (R-GROUP).
 * @param param the top-level field they stand in: `tools`, or `input` for an `additional_tools` item
 */
export function readTools(entries: unknown[], param: string, body: Body): Tool[] {
  return entries.flatMap((entry) => {
    const tool = readObject(entry, param, 'each tool')
    return tool['type'] === 'namespace' ? readMembers(tool, param, body) : [readFunction(tool, param, body)]
  })
}

function readMembers(group: Json, param: string, body: Body): Tool[] {
  const name = readString(group['name'], param, '"name" of a namespace')
  const about = optional(readString, group['description'], param, '"description" of a namespace')
  return readArray(group['tools'], param, '"tools" of a namespace').map((entry) => {
    const member = readFunction(readObject(entry, param, 'each tool of a namespace'), param, body)
    const description = [about, member.description].filter(Boolean).join('\n\n') || undefined
    return name === plainNamespace ? { ...member, description } : { ...member, description, namespace: name }
  })
}

function readFunction(tool: Json, param: string, body: Body): Tool {
  // Whatever stands where, the tools are what has to change (spec 7.3).
  if (!isAbsent(tool['type']) && tool['type'] !== 'function') refuse('tools', refusals.hostedTool)
  return {
    name: readString(tool['name'], param, '"name" of a tool'),
    description: optional(readString, tool['description'], param, '"description" of a tool'),
    schema: optionalRawObject(body, tool['parameters'], param, '"parameters" of a tool'),
    strict: optional(readBoolean, tool['strict'], param, '"strict" of a tool'),
  }
}

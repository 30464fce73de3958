import { sha256Hex } from '../ids/digest.ts'
import type { InferenceRequest } from './request.ts'

/** A tool as the client knows it. */
export type ToolName = { name: string; namespace?: string }

export type Names = {
  /** The upstream's name for a tool, declared or only in the history. */
  upstreamOf: (tool: ToolName) => string
  /** Upstream name → the client's, where they differ or a namespace is lost: for the way back. */
  restore: ReadonlyMap<string, ToolName>
}

/**
 * Names for one request, one upstream name per tool and one tool per upstream name (R-NAME, R-GROUP). A name the wire
 * takes stays as it is. A member of a namespace has its bare name if no other declared tool has it. The order of the
 * conversation decides, so that names do not change as it grows (ruling T8).
 */
export function assignNames(request: Pick<InferenceRequest, 'tools' | 'turns'>, nameLengthMax: number): Names {
  if (areTaken(request, nameLengthMax)) return { upstreamOf: ({ name }) => name, restore: new Map() }
  const declaredAs = Map.groupBy(request.tools, (tool) => tool.name)
  const upstream = new Map<string, string>()
  const restore = new Map<string, ToolName>()
  const taken = new Set<string>()
  // A declared name that the wire takes is never given to another tool.
  for (const tool of request.tools) if (!tool.namespace && isLegal(tool.name, nameLengthMax)) assign(tool, tool.name)
  for (const tool of request.tools) if (!upstream.has(keyOf(tool))) assign(tool, candidateFor(tool, 1))
  for (const turn of request.turns) {
    if (turn.by !== 'model') continue
    for (const part of turn.parts) {
      if (part.type !== 'tool_call') continue
      const tool = resolve(part)
      if (!upstream.has(keyOf(tool))) assign(tool, candidateFor(tool, 0))
    }
  }
  return { upstreamOf: (tool) => upstream.get(keyOf(resolve(tool))) ?? tool.name, restore }

  function assign(tool: ToolName, candidate: string) {
    const name = aliasFor(candidate, nameLengthMax, taken)
    taken.add(name)
    upstream.set(keyOf(tool), name)
    if (name !== tool.name || tool.namespace) restore.set(name, named(tool))
  }

  /** @param bearers how many declared tools have the bare name if no other tool has it: the tool itself, or none */
  function candidateFor(tool: ToolName, bearers: 0 | 1): string {
    if (!tool.namespace) return tool.name
    const isAlone = (declaredAs.get(tool.name)?.length ?? 0) === bearers && !taken.has(tool.name)
    return isAlone ? tool.name : `${tool.namespace}__${tool.name}`
  }

  /** A bare name in the history means the one declared tool that has it. */
  function resolve(tool: ToolName): ToolName {
    if (tool.namespace) return tool
    const declared = declaredAs.get(tool.name)
    return declared?.length === 1 && declared[0] ? declared[0] : tool
  }
}

/** Whether all names stay as they are. No tool is declared twice. */
function areTaken({ tools, turns }: Pick<InferenceRequest, 'tools' | 'turns'>, lengthMax: number): boolean {
  for (const { name, namespace } of tools) if (namespace || !isLegal(name, lengthMax)) return false
  for (const turn of turns)
    if (turn.by === 'model')
      for (const part of turn.parts)
        if (part.type === 'tool_call' && (part.namespace || !isLegal(part.name, lengthMax))) return false
  return true
}

/** The same for two tools that have the same name in the same namespace, or in none. */
export function keyOf({ name, namespace }: ToolName): string {
  // The length keeps names apart that contain the separator themselves.
  if (!namespace && !name.startsWith('\u0000')) return name
  return `\u0000${namespace?.length ?? 0}:${namespace ?? ''}${name}`
}

function named(tool: ToolName): ToolName {
  return tool.namespace ? { name: tool.name, namespace: tool.namespace } : { name: tool.name }
}

function isLegal(name: string, lengthMax: number): boolean {
  return name.length > 0 && name.length <= lengthMax && !/[^A-Za-z0-9_-]/.test(name)
}

/** The candidate, or its clean beginning and as much of its hash as keeps it apart from the names already taken. */
function aliasFor(candidate: string, lengthMax: number, taken: Set<string>): string {
  if (isLegal(candidate, lengthMax) && !taken.has(candidate)) return candidate
  const clean = candidate.replace(/[^A-Za-z0-9_-]/g, '_')
  const digest = sha256Hex(candidate)
  for (let digits = 10; digits < lengthMax && digits <= digest.length; digits++) {
    const alias = `${clean.slice(0, lengthMax - 1 - digits)}_${digest.slice(0, digits)}`
    if (!taken.has(alias)) return alias
  }
  throw new Error('no free tool name')
}

import { sha256Hex } from '../ids.ts'
import type { InferenceRequest, ToolName } from './request.ts'

/** The rules of an upstream for tool names, from its profile. */
type NameRules = { readonly toolNameMax: number; readonly toolNameStart: 'any' | 'letter' }

export type Names = {
  /** Returns the upstream's name for a tool. The tool may be declared, or it may occur only in the history. */
  upstreamOf: (tool: ToolName) => string
  /** Upstream name → client's name, for answers. Only names that differ or lost a namespace are included. */
  restore: ReadonlyMap<string, ToolName>
}

/**
 * Assigns names for one request: one upstream name per tool, and one tool per upstream name (R-NAME, R-GROUP). A name
 * that the wire accepts stays. A member of a namespace gets its bare name if no other declared tool has that name.
 * Names depend only on the order of the conversation, so that they stay the same as it grows (ruling T8).
 */
export function assignNames(request: Pick<InferenceRequest, 'tools' | 'turns'>, rules: NameRules): Names {
  if (areTaken(request, rules)) return { upstreamOf: ({ name }) => name, restore: new Map() }
  const declaredAs = Map.groupBy(request.tools, (tool) => tool.name)
  const upstream = new Map<string, string>()
  const restore = new Map<string, ToolName>()
  const taken = new Set<string>()
  // A declared name that the wire accepts is never given to another tool.
  for (const tool of request.tools) if (!tool.namespace && isLegal(tool.name, rules)) assign(tool, tool.name)
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
    const name = aliasFor(candidate, rules, taken)
    taken.add(name)
    upstream.set(keyOf(tool), name)
    if (name !== tool.name || tool.namespace) restore.set(name, named(tool))
  }

  /**
   * Returns the preferred name for a tool. It is the bare name if no other declared tool has that name.
   * @param bearers 1 if this tool is declared, so that it is itself a declared tool with the name; otherwise 0
   */
  function candidateFor(tool: ToolName, bearers: 0 | 1): string {
    if (!tool.namespace) return tool.name
    const isAlone = (declaredAs.get(tool.name)?.length ?? 0) === bearers && !taken.has(tool.name)
    return isAlone ? tool.name : `${tool.namespace}__${tool.name}`
  }

  /** Finds the tool that a name means. A name without a namespace means the only declared tool with that name. */
  function resolve(tool: ToolName): ToolName {
    if (tool.namespace) return tool
    const declared = declaredAs.get(tool.name)
    return declared?.length === 1 && declared[0] ? declared[0] : tool
  }
}

/** Whether all tools can keep their names. Requests that declare a tool twice were refused before. */
function areTaken({ tools, turns }: Pick<InferenceRequest, 'tools' | 'turns'>, rules: NameRules): boolean {
  for (const { name, namespace } of tools) if (namespace || !isLegal(name, rules)) return false
  for (const turn of turns)
    if (turn.by === 'model')
      for (const part of turn.parts)
        if (part.type === 'tool_call' && (part.namespace || !isLegal(part.name, rules))) return false
  return true
}

/** A key for a tool. Two tools get the same key if both name and namespace are equal. */
export function keyOf({ name, namespace }: ToolName): string {
  // The key contains the length of the namespace. So keys differ even if a name contains the separator itself.
  if (!namespace && !name.startsWith('\u0000')) return name
  return `\u0000${namespace?.length ?? 0}:${namespace ?? ''}${name}`
}

function named(tool: ToolName): ToolName {
  return tool.namespace ? { name: tool.name, namespace: tool.namespace } : { name: tool.name }
}

function isLegal(name: string, { toolNameMax, toolNameStart }: NameRules): boolean {
  if (lacksLetter(name, toolNameStart)) return false
  return name.length > 0 && name.length <= toolNameMax && !/[^A-Za-z0-9_-]/.test(name)
}

function lacksLetter(name: string, start: NameRules['toolNameStart']): boolean {
  return start === 'letter' && !/^[A-Za-z]/.test(name)
}

/**
 * Returns the candidate. If the candidate is invalid or taken, its beginning is returned with a part of its hash.
 * Invalid characters in that beginning are replaced, and a missing letter is put before it.
 */
function aliasFor(candidate: string, rules: NameRules, taken: Set<string>): string {
  if (isLegal(candidate, rules) && !taken.has(candidate)) return candidate
  const { toolNameMax, toolNameStart } = rules
  const clean = (lacksLetter(candidate, toolNameStart) ? 't_' : '') + candidate.replace(/[^A-Za-z0-9_-]/g, '_')
  const digest = sha256Hex(candidate)
  for (let digits = 10; digits < toolNameMax && digits <= digest.length; digits++) {
    const alias = `${clean.slice(0, toolNameMax - 1 - digits)}_${digest.slice(0, digits)}`
    if (!taken.has(alias)) return alias
  }
  throw new Error('no free tool name')
}

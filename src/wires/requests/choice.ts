import type { Profile } from '../../catalog/profile.ts'
import type { Names } from '../../inference/names.ts'
import type { Tool, ToolChoice } from '../../inference/request.ts'
import type { Losses } from './losses.ts'
import { refuse } from './refusals.ts'

/** The tools that are declared to the upstream, and the choice among them. All names are the upstream's. */
export type OfferedTools = {
  tools: Tool[]
  mode: ToolChoice['mode']
  name?: string
  /** Only these of the declared tools, if the upstream takes such a list. */
  allowed?: string[]
  parallel?: boolean
}

/**
 * The tools and the choice a model can be held to (R-CHOICE). A mode it lacks is said in another way of the same
 * meaning, else refused (ruling T9).
 */
export function resolveChoice(
  tools: readonly Tool[],
  wish: ToolChoice,
  names: Names,
  profile: Pick<Profile, 'toolChoice' | 'accepts'>,
  losses: Losses,
): OfferedTools {
  if (tools.length === 0) {
    // Upstreams refuse a choice where there is nothing to choose from.
    if (wish.mode !== 'default') losses.add('tool_choice', 'dropped', 'there are no tools')
    if (wish.parallel !== undefined) losses.add('parallel_tool_calls', 'dropped', 'there are no tools')
    return { tools: [], mode: 'default' }
  }
  const declared = tools.map((tool) => ({ ...tool, name: names.upstreamOf(tool) }))
  const byName = Map.groupBy(tools, (tool) => tool.name)
  const upstreamOf = (name: string) => onlyOne(byName.get(name) ?? [], names)
  const parallel = wish.parallel === undefined ? {} : { parallel: wish.parallel }
  if (wish.only) return { ...chooseSubset(wish, upstreamOf), ...parallel }
  switch (wish.mode) {
    case 'named': {
      const name = upstreamOf(wish.name ?? '')
      if (name === undefined)
        refuse('tool_choice', 'it names a tool that is not declared: declare it in tools, or remove it.')
      if (profile.toolChoice.has('named')) return { tools: declared, mode: 'named', name, ...parallel }
      // Having to call one of one tool is having to call that tool.
      return { tools: declared.filter((tool) => tool.name === name), mode: supported('required'), ...parallel }
    }
    case 'none':
      if (profile.toolChoice.has('none')) return { tools: declared, mode: 'none', ...parallel }
      return { tools: [], mode: 'default' }
    case 'required':
      return { tools: declared, mode: supported('required'), ...parallel }
    case 'auto':
      return { tools: declared, mode: profile.toolChoice.has('auto') ? 'auto' : 'default', ...parallel }
    case 'default':
      return { tools: declared, mode: 'default', ...parallel }
  }

  function supported(mode: 'required'): ToolChoice['mode'] {
    if (!profile.toolChoice.has(mode)) refuse('tool_choice', 'this model cannot be made to call a tool: send auto.')
    return mode
  }

  function chooseSubset(choice: ToolChoice, find: (name: string) => string | undefined): OfferedTools {
    const wanted = [...new Set(choice.only)]
    const allowed = new Set(wanted.map(find).filter((name) => name !== undefined))
    if (allowed.size === 0)
      refuse('tool_choice', 'it allows no tool that is declared: declare one of them in tools, or remove it.')
    const mode = choice.mode === 'required' ? supported('required') : 'auto'
    if (profile.accepts.has('allowed_tools')) return { tools: declared, mode, allowed: [...allowed] }
    return { tools: declared.filter((tool) => allowed.has(tool.name)), mode }
  }
}

/** The upstream's name of the one tool that is called so: the plain one, or the only member of a namespace (R-GROUP). */
function onlyOne(tools: readonly Tool[], names: Names): string | undefined {
  const tool = tools.find((candidate) => !candidate.namespace) ?? tools[0]
  if (!tool) return undefined
  if (tool.namespace && tools.length > 1) {
    refuse('tool_choice', 'it names a tool that several namespaces have: send each its own name.')
  }
  return names.upstreamOf(tool)
}

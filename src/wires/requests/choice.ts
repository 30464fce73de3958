import type { Profile } from '../../catalog/profile.ts'
import type { Names } from '../../inference/names.ts'
import type { Tool, ToolChoice } from '../../inference/request.ts'
import type { Losses } from './losses.ts'
import { refuse } from './refusals.ts'

/** The tools that are declared to the upstream, and the choice among them. All names are the upstream's. */
export type OfferedTools = {
  tools: readonly Tool[]
  mode: ToolChoice['mode']
  name?: string
  /** Only these of the declared tools, if the upstream takes such a list. */
  allowed?: string[]
  parallel?: boolean
  /** Words that ask for a call, for a model that cannot be forced to make one (ruling Y6). */
  line?: string
}

/**
 * The tools and the choice a model can be held to (R-CHOICE). A mode it lacks is said in another way of the same
 * meaning, else in words (ruling Y6).
 * @throws GatewayError 400 for a choice of tools that are not declared.
 */
export function resolveChoice(
  tools: readonly Tool[],
  wish: ToolChoice,
  names: Names,
  profile: Pick<Profile, 'toolChoice' | 'accepts' | 'drops'>,
  losses: Losses,
): OfferedTools {
  if (tools.length === 0) {
    // Upstreams refuse a choice where there is nothing to choose from.
    if (wish.mode !== 'default') losses.add('tool_choice', 'dropped', 'there are no tools')
    if (wish.parallel !== undefined) losses.add('parallel_tool_calls', 'dropped', 'there are no tools')
    return { tools: [], mode: 'default' }
  }
  const declared = names.restore.size === 0 ? tools : tools.map((tool) => ({ ...tool, name: names.upstreamOf(tool) }))
  let byName: Map<string, Tool[]> | undefined
  const upstreamOf = (name: string) => {
    byName ??= Map.groupBy(tools, (tool) => tool.name)
    return onlyOne(byName.get(name) ?? [], names)
  }
  const parallel = wish.parallel === undefined ? {} : { parallel: wish.parallel }
  const takes: Profile['toolChoice'] = profile.drops.has('tool_choice') ? new Set() : profile.toolChoice
  const auto = takes.has('auto') ? 'auto' : 'default'
  if (wish.only) return { ...chooseSubset(wish, upstreamOf), ...parallel }
  switch (wish.mode) {
    case 'named': {
      const name = upstreamOf(wish.name ?? '')
      if (name === undefined)
        refuse('tool_choice', 'it names a tool that is not declared: declare it in tools, or remove it.')
      return { ...force([name], takes.has('named')), ...parallel }
    }
    case 'none':
      if (takes.has('none')) return { tools: declared, mode: 'none', ...parallel }
      return { tools: [], mode: 'default' }
    case 'required':
      return { ...force(declared.map(({ name }) => name)), ...parallel }
    case 'auto':
      return { tools: declared, mode: auto, ...parallel }
    case 'default':
      return { tools: declared, mode: 'default', ...parallel }
  }

  /** One of these must be called (ruling Y6). Having to call one of one tool is having to call that tool. */
  function force(wanted: string[], prefersName = false): OfferedTools {
    const only = declared.filter(({ name }) => wanted.includes(name))
    if (takes.has('required') && !prefersName) return { tools: only, mode: 'required' }
    if (takes.has('named') && only.length === 1) return { tools: declared, mode: 'named', name: only[0]!.name }
    losses.add('tool_choice', 'rewritten', 'asked for in words')
    const which = only.length === 1 ? `the tool ${only[0]!.name}` : 'one of the tools'
    return { tools: only, mode: auto, line: `Answer by calling ${which}.` }
  }

  function chooseSubset(choice: ToolChoice, find: (name: string) => string | undefined): OfferedTools {
    const wanted = [...new Set(choice.only)]
    const allowed = [...new Set(wanted.map(find).filter((name) => name !== undefined))]
    if (allowed.length === 0)
      refuse('tool_choice', 'it allows no tool that is declared: declare one of them in tools, or remove it.')
    const offered: OfferedTools =
      choice.mode === 'required'
        ? force(allowed)
        : { tools: declared.filter((tool) => allowed.includes(tool.name)), mode: auto }
    if (offered.mode === 'named' || !profile.accepts.has('allowed_tools')) return offered
    return { ...offered, tools: declared, mode: offered.mode === 'required' ? 'required' : 'auto', allowed }
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

import type { Profile } from '../../catalog/profile.ts'
import type { Names } from '../../inference/names.ts'
import type { Tool, ToolChoice } from '../../inference/request.ts'
import type { Losses } from './losses.ts'
import { refuse } from './refusals.ts'

/** The tools declared to the upstream, and the choice among them. All names are the upstream's. */
export type OfferedTools = {
  tools: readonly Tool[]
  mode: ToolChoice['mode']
  name?: string
  /** The only tools that may be called, if the upstream accepts such a list. */
  allowed?: string[]
  parallel?: boolean
  /** An instruction in words to call a tool, for a model that no field can force to do so (ruling Y6). */
  line?: string
}

/**
 * Decides which tools and which choice to send (R-CHOICE). An unsupported mode is replaced by an equivalent one, else
 * by an instruction in words (ruling Y6).
 * @throws GatewayError 400 for a choice of tools that are not declared
 */
export function resolveChoice(
  tools: readonly Tool[],
  wish: ToolChoice,
  names: Names,
  profile: Pick<Profile, 'toolChoice' | 'accepts' | 'drops'>,
  losses: Losses,
): OfferedTools {
  if (tools.length === 0) {
    // Upstreams refuse a choice without tools.
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

  /**
   * Makes the model call one of the wanted tools (ruling Y6). If only one tool is left, the modes `required` and
   * `named` are equivalent.
   */
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

/**
 * Returns the upstream's name of the tool that a bare name means. A tool without a namespace comes first. Otherwise
 * only one namespace may have a tool of this name (R-GROUP).
 */
function onlyOne(tools: readonly Tool[], names: Names): string | undefined {
  const tool = tools.find((candidate) => !candidate.namespace) ?? tools[0]
  if (!tool) return undefined
  if (tool.namespace && tools.length > 1) {
    refuse('tool_choice', 'it names a tool that several namespaces have: send each its own name.')
  }
  return names.upstreamOf(tool)
}

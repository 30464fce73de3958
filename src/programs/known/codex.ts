import type { Access, Program } from '../program.ts'
import { json, keyVariable, type SettingsFile } from '../settings.ts'
import { hearInstructions } from './codex-instructions.ts'

const catalogFile = 'triwire-models.json'
const efforts = ['low', 'medium', 'high']

/**
 * Codex warns about an unknown model and limits its window to 272,000 tokens. An entry in a model catalog of Codex's own format
 * avoids that. It must have the agent's instructions. We use those that the installed Codex sends to unknown models anyway.
 */
export const codex: Program = {
  wires: ['responses'],
  assumes: '272,000 tokens',
  asks: {
    hear: hearInstructions,
    otherwise:
      'codex is not on this machine, or too old: it will warn that it has no metadata of the model, and take 272,000 tokens at most for its window; run this again where it is',
    ifPrinted:
      'with --write Codex gets an entry of the model too: without it it warns that it has no metadata, and takes 272,000 tokens at most for the window',
  },
  settings(access) {
    const catalog = catalogOf(access)
    return {
      files: [configOf(access, catalog !== undefined), ...(catalog ? [catalog] : [])],
      env: { [keyVariable]: access.key },
      commands: [['codex']],
    }
  },
}

function configOf({ origin, model, models, contextWindow }: Access, hasCatalog: boolean): SettingsFile {
  // Without a catalog, Codex offers no other model of ours to change to.
  const searches = (hasCatalog ? models : models.slice(0, 1)).every((one) => one.hostedToolsWire === 'responses')
  const text = `model = ${JSON.stringify(model)}
model_provider = "triwire"
${contextWindow === undefined ? '' : `model_context_window = ${contextWindow}\n`}${hasCatalog ? `model_catalog_json = "./${catalogFile}"\n` : ''}${searches ? '' : '# Hosted web search runs at the model\'s provider: a model that is translated for cannot have it.\nweb_search = "disabled"\n'}
[model_providers.triwire]
name = "triwire"
base_url = ${JSON.stringify(`${origin}/v1`)}
env_key = "${keyVariable}"
wire_api = "responses"
`
  // The earlier keys are removed, because another catalog would not have this model.
  return {
    path: '~/.codex/config.toml',
    format: 'toml',
    text,
    without: [['model_context_window'], ['model_catalog_json'], ['web_search']],
  }
}

/** Makes catalog entries with what Codex assumes of unknown models, except for windows and the efforts to choose from. */
function catalogOf({ told, models }: Access): SettingsFile | undefined {
  if (told === undefined) return undefined
  const entries = models.map(({ model, contextWindow }, priority) => ({
    slug: model,
    display_name: model,
    description: 'By triwire',
    context_window: contextWindow,
    max_context_window: contextWindow,
    supported_reasoning_levels: efforts.map((effort) => ({ effort, description: effort })),
    shell_type: 'unified_exec',
    truncation_policy: { mode: 'tokens', limit: 10_000 },
    visibility: 'list',
    supported_in_api: true,
    priority,
    support_verbosity: false,
    supports_parallel_tool_calls: true,
    experimental_supported_tools: [],
    input_modalities: ['text', 'image'],
    base_instructions: told,
  }))
  return { path: `~/.codex/${catalogFile}`, format: 'own', text: json({ models: entries }) }
}

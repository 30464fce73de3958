import type { Model } from '../catalog/model.ts'
import { presets } from '../catalog/presets.ts'
import type { ModelWire } from '../catalog/wire-names.ts'
import type { Access, Figures } from './program.ts'

/** The figures of a model, and their source. The list of a gateway has neither window nor maximum (spec 2.9). */
type SourcedFigures = Figures & { windowFrom?: 'the command' | 'the configuration' | `the preset ${string}` }

/** The facts that `setup` collects before it describes a program. */
export type SetupSource = {
  access: Access
  figures: SourcedFigures
  /** The model's own wire, if it is known from the operator's file; a list does not have it (spec 2.9). */
  modelWire: ModelWire | undefined
  /** Whether the command runs beside the operator's file. */
  isOperator: boolean
  /** Sentences for the person. */
  notes: string[]
}

/** Takes each figure from the first source that has it: the command, the operator's file, the presets. */
export function findFigures(id: string, asked: Partial<Figures>, model: Model | undefined): SourcedFigures {
  const preset = findPreset(id)
  const outputTokensMax = asked.outputTokensMax ?? model?.outputTokensMax ?? preset?.outputTokensMax
  if (asked.contextWindow !== undefined)
    return { contextWindow: asked.contextWindow, outputTokensMax, windowFrom: 'the command' }
  if (model?.contextWindow !== undefined)
    return { contextWindow: model.contextWindow, outputTokensMax, windowFrom: 'the configuration' }
  if (preset) return { contextWindow: preset.contextWindow, outputTokensMax, windowFrom: `the preset ${preset.name}` }
  return { contextWindow: undefined, outputTokensMax }
}

/** Finds a preset by the model's id, also if that begins with a provider's name. */
function findPreset(id: string) {
  const bare = id.slice(id.lastIndexOf('/') + 1)
  for (const [name, { models }] of Object.entries(presets)) {
    const model = models.find((one) => one.id === bare)
    if (model) return { name, contextWindow: model.contextWindow, outputTokensMax: model.maxOutputTokens }
  }
  return undefined
}

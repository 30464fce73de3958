import type { Model, Prices } from '../catalog/model.ts'
import { presets, rowNow } from '../catalog/presets.ts'
import { baseOf } from '../catalog/price-list.ts'
import type { ModelWire } from '../catalog/wire-names.ts'
import type { Access, Figures, OfferedModel, Program } from './program.ts'

/** A model's figures, and the source of its context window. A gateway's list has no windows or limits (spec 2.9). */
type SourcedFigures = Figures & { windowFrom?: 'the command' | 'the configuration' | `the preset ${string}` }

/** A model that a program can use, with the facts that decide for which work it is chosen. */
export type Candidate = OfferedModel & {
  /** The model's own wire; undefined if neither the operator's configuration nor a preset has the model. */
  wire: ModelWire | undefined
  /** Credits for a million input tokens plus a million output tokens. This sum is used only to compare models. */
  price: number | undefined
}

/**
 * Whether an id has no character that could end a string. Such an id may be written into any settings or source code.
 */
export function isWritable(id: string): boolean {
  return !/[\p{C}'"`\\]/u.test(id)
}

/** Describes each model that a program can use. Figures in the operator's configuration replace those of presets. */
export function listCandidates(ids: readonly string[], models: ReadonlyMap<string, Model> | undefined): Candidate[] {
  return ids.map((id) => {
    const model = models?.get(id)
    const preset = findPreset(id, model)
    const { contextWindow, outputTokensMax } = findFigures(id, {}, model)
    return {
      ...{ model: id, contextWindow, outputTokensMax, wire: model?.wire ?? preset?.wire },
      price: model ? comparable(baseOf(model.prices).prices) : preset?.price,
      hostedToolsWire: model?.hostedTools === 'pass' ? model.wire : undefined,
    }
  })
}

function comparable({ inputNanos, outputNanos }: Prices): number {
  return Number(inputNanos + outputNanos) / 1e9
}

/** The facts that `setup` collects before it describes a program. */
export type SetupSource = {
  access: Access
  figures: SourcedFigures
  /** The model's own wire, if the operator's configuration has the model. A gateway's list has no wires (spec 2.9). */
  modelWire: ModelWire | undefined
  /** Whether the command can read the operator's configuration. */
  isOperator: boolean
  /** The address at which clients on other machines reach the gateway, if it was given. */
  publicUrl: string | undefined
  /** Remarks that `setup` prints, such as which model it has chosen. */
  notes: string[]
}

/** Takes each figure from the first source that has it: the command, the operator's configuration, the presets. */
export function findFigures(id: string, asked: Partial<Figures>, model: Model | undefined): SourcedFigures {
  const preset = findPreset(id, model)
  const outputTokensMax = asked.outputTokensMax ?? model?.outputTokensMax ?? preset?.outputTokensMax
  if (asked.contextWindow !== undefined)
    return { contextWindow: asked.contextWindow, outputTokensMax, windowFrom: 'the command' }
  if (model?.contextWindow !== undefined)
    return { contextWindow: model.contextWindow, outputTokensMax, windowFrom: 'the configuration' }
  if (preset) return { contextWindow: preset.contextWindow, outputTokensMax, windowFrom: `the preset ${preset.name}` }
  return { contextWindow: undefined, outputTokensMax }
}

/** Finds a preset by the requested name, else by another name of the model. A prefix `provider/` is ignored. */
function findPreset(asked: string, named: Model | undefined) {
  for (const id of [asked, named?.entryId, named?.upstreamModel]) {
    const bare = id?.slice(id.lastIndexOf('/') + 1)
    for (const [name, { wire, models }] of Object.entries(presets)) {
      const model = models.find((one) => one.id === bare)
      if (!model) continue
      const { contextWindow, maxOutputTokens, prices } = model
      const price = prices && Number(rowNow(prices).input) + Number(rowNow(prices).output)
      return { name, wire, price, contextWindow, outputTokensMax: maxOutputTokens }
    }
  }
  return undefined
}

/**
 * Chooses the model for a program if the person named none. The first choice is a model of the program's families. The
 * second choice is a model that answers on a wire of the program. If there is none, the first model of the list is
 * chosen.
 */
export function chooseModel<M extends Candidate>({ families = [], wires }: Program, list: readonly M[]): M | undefined {
  for (const family of families) {
    const found = findFamily(family, list)
    if (found) return found
  }
  return list.find(({ wire }) => wires.some((own) => own === wire)) ?? list[0]
}

/**
 * Chooses the model for titles and other small work. The first choice is a model of the program's family for such work.
 * The second choice is the cheapest model with a known price. If several are equally cheap, the first model of the list
 * is preferred, then a model of that first model's wire.
 */
export function chooseSmall<M extends Candidate>({ small }: Program, list: readonly M[]): M {
  const large = list[0]!
  if (small === undefined) return large
  const family = small.family === undefined ? undefined : findFamily(small.family, list, large.model)
  if (family) return family
  const rank = (one: M) => (one.model === large.model ? 0 : one.wire === large.wire ? 1 : 2)
  const priced = list.filter(({ price }) => price !== undefined)
  return priced.sort((a, b) => a.price! - b.price! || rank(a) - rank(b))[0] ?? large
}

/**
 * Finds the model of a family. Models of the family have its name as a word in their ids. The chosen model is returned
 * if it is of the family. Otherwise the newest model of the family is returned, by the numbers in the ids.
 */
export function findFamily<M extends OfferedModel>(family: string, list: readonly M[], chosen?: string): M | undefined {
  const word = new RegExp(String.raw`(?<![a-z\d])${family}(?![a-z])`, 'i')
  const members = list.filter(({ model }) => word.test(model))
  return members.find(({ model }) => model === chosen) ?? members.sort((a, b) => compareVersions(b.model, a.model))[0]
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [versionOf(a), versionOf(b)]
  const place = left.findIndex((number, index) => number !== right[index])
  return place === -1 ? left.length - right.length : left[place]! - (right[place] ?? -1)
}

/** The numbers in an id that mark its version. Dates, such as 20251101, are skipped. */
function versionOf(id: string): number[] {
  return (id.match(/\d+/g) ?? []).map(Number).filter((number) => number < 1_000)
}

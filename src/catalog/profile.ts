import type { ProfileKeys } from './profile-keys.ts'
import type { Refusal } from './refusals.ts'
import { type ModelWire, modelWireNames } from './wire-names.ts'

/**
 * The request fields that an upstream's model accepts, and its quirks. Every decision that depends on the model reads
 * this table, never the model's name. The keys and their meanings are in `profile-keys.ts`. A key that only one wire
 * reads is under that wire's name. Values for an unknown upstream suit a plain, complete implementation of the wire.
 */
export type Profile = Omit<ProfileValues, { [Wire in GroupedWire]: KeyOfOneWire<Wire> }[GroupedWire]> & {
  readonly [Wire in GroupedWire]: Pick<ProfileValues, KeyOfOneWire<Wire>>
}

/** All values of a profile, for any wire: the keys of the configuration file in camelCase, and the refusals. */
export type ProfileValues = Omit<SpelledInCode<ProfileKeys>, SetKey | 'thinkTags'> & {
  [Key in SetKey]: ReadonlySet<SpelledInCode<ProfileKeys>[Key][number]>
} & {
  thinkTags?: Exclude<SpelledInCode<ProfileKeys>['thinkTags'], false>
  /**
   * The provider's refusals whose cause cannot be seen from the HTTP status. The first row that fits a refusal counts
   * (ruling U2).
   */
  refusals: readonly Refusal[]
}

/** Keys of a profile whose lists are kept as sets, because code looks up words in them. */
export const setKeys = ['drops', 'accepts', 'toolChoice'] as const
type SetKey = (typeof setKeys)[number]

/** The keys of a profile that not all wires read, listed under each wire that reads them. */
export const keysOfWires = {
  chat: [
    'maxField',
    'toolSchemas',
    'reasoningField',
    'replayThought',
    'toolImages',
    'prefill',
    'nullContent',
    'callSignature',
    'afterResults',
    'stringOnly',
    'maxStops',
    'operatorInPlace',
    'developerRole',
  ],
  messages: [
    'maxStops',
    'operatorInPlace',
    'prefill',
    'autoCache',
    'autoCacheSameWire',
    'assistantFirst',
    'unprovenThought',
    'oneSamplingField',
    'costlyBetas',
    'envelope',
  ],
  responses: ['developerRole', 'unprovenThought', 'toolSchemas'],
} as const satisfies Partial<Record<ModelWire, readonly (keyof ProfileValues)[]>>

type GroupedWire = keyof typeof keysOfWires
type KeyOf<Wire extends GroupedWire> = (typeof keysOfWires)[Wire][number]
type KeyOfOneWire<Wire extends GroupedWire> = Exclude<KeyOf<Wire>, KeyOf<Exclude<GroupedWire, Wire>>>

/** A name of the configuration file in the spelling of the code: `max_field` becomes `maxField`. */
export type CamelCase<Key> = Key extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Key

type SpelledInCode<Value> = Value extends readonly (infer Item)[]
  ? readonly Item[]
  : Value extends object
    ? { [Key in keyof Value as CamelCase<Key>]: SpelledInCode<Value[Key]> }
    : Value

/** Returns how long the prompt cache of a model lives after its last use, in ms. */
export function cacheLifeMs({ cacheLife }: Pick<ProfileValues, 'cacheLife'>): number {
  return { '5m': 300_000, '30m': 1_800_000, '1h': 3_600_000 }[cacheLife]
}

/** Makes a profile. The keys that only one wire reads are grouped under the name of that wire. */
export function groupByWire(values: ProfileValues): Profile {
  const grouped: Record<string, unknown> = { ...values }
  for (const wire of Object.keys(keysOfWires) as GroupedWire[]) {
    const own = keysOfWires[wire].filter((key) => wiresOfProfileKey(key).length === 1)
    grouped[wire] = Object.freeze(Object.fromEntries(own.map((key) => [key, values[key]])))
    for (const key of own) delete grouped[key]
  }
  return Object.freeze(grouped) as Profile
}

/** Returns the wires that read a key of a profile. @param key in camelCase */
export function wiresOfProfileKey(key: string): readonly ModelWire[] {
  const wires = Object.keys(keysOfWires) as GroupedWire[]
  const found = wires.filter((wire) => (keysOfWires[wire] as readonly string[]).includes(key))
  return found.length > 0 ? found : modelWireNames
}

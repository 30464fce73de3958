/** A setting of the other gateway, or a field of its keys, and what the import did with it. */
export type ImportedSetting = {
  /** The path of the setting in the other program, such as `model_list[0].litellm_params.rpm`. */
  setting: string
  fate: 'carried' | 'replaced' | 'left'
  /** The place of the setting in our configuration, or the reason why there is no place. */
  why: string
}

/**
 * Lists the settings that were not carried over, with the reasons, and counts the others.
 * @param notes sentences about assumptions
 */
export function listText(what: string, settings: readonly ImportedSetting[], notes: readonly string[]): string {
  const of = (fate: ImportedSetting['fate']) => settings.filter((one) => one.fate === fate)
  const [carried, replaced, left] = [of('carried'), of('replaced'), of('left')]
  const lines = (some: readonly ImportedSetting[]) => some.map(({ setting, why }) => `  ${visible(setting)}: ${why}`)
  return [
    `${settings.length} ${what}: ${carried.length} carried, ${replaced.length} replaced, ${left.length} not carried.`,
    ...(replaced.length > 0 ? ['Replaced, triwire does it in its own way:', ...lines(replaced)] : []),
    ...(left.length > 0 ? ['Not carried:', ...lines(left)] : []),
    ...(notes.length > 0 ? ['Assumed, look at it:', ...notes.map((one) => `  ${visible(one)}`)] : []),
  ].join('\n')
}

/** The longest text of a line. It is more than any sentence with a command and the name of an account. */
const charsMax = 1_000

function visible(text: string): string {
  const shown = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
  return shown.length > charsMax ? `${shown.slice(0, charsMax - 1)}…` : shown
}

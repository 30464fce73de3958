import type { Setting, SettingOptions } from './setting.ts'

/** The size of a trial: small for the check, whole for the nightly run. */
export type Size = 'small' | 'whole'

/** A demand, and whether it was met. */
export type Finding = { ok: boolean; text: string }

export type Trial = {
  name: string
  /** In the words of the demand. */
  demand: string
  /** Of the setting that it is given. */
  options?: SettingOptions
  /** Only by night. */
  isNightly?: boolean
  run(setting: Setting, size: Size): Promise<Finding[]>
}

export function finding(ok: boolean, text: string): Finding {
  return { ok, text }
}

/** In one line, such as `300 × 200, 700 × 429`. */
export function formatCounts(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ')
}

import type { Setting, SettingOptions } from './setting.ts'

/** The size of a trial: small for the check, whole for the nightly run. */
export type Size = 'small' | 'whole'

/** The result of one check, and whether it is as demanded. */
export type Finding = { ok: boolean; text: string }

/** Options of the command line for a run. */
export type Course = {
  /** The number of kills, for trials that kill until a number is reached. Default: by size. */
  kills: number | undefined
  /** Returns a number from 0 to 1, which depends on the seed of the run. */
  random(): number
}

export type Trial = {
  name: string
  /** The result that is required, in words. */
  demand: string
  /** Options of the setting in which the trial runs. */
  options?: SettingOptions
  /** Whether the trial runs only at night. */
  isNightly?: boolean
  run(setting: Setting, size: Size, course: Course): Promise<Finding[]>
}

export function finding(ok: boolean, text: string): Finding {
  return { ok, text }
}

/** Formats counts in one line, such as `300 × 200, 700 × 429`. */
export function formatCounts(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ')
}

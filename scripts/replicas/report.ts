import type { Setting, SettingOptions } from './setting.ts'

/** The size of a trial: small for the check, whole for the nightly run. */
export type Size = 'small' | 'whole'

/** A demand, and whether it was met. */
export type Finding = { ok: boolean; text: string }

/** Options of the command line for a run. */
export type Course = {
  /** The number of kills, for trials that kill until a number is reached. Default: by size. */
  kills: number | undefined
  /** In [0, 1), from the seed of the run. */
  random(): number
}

export type Trial = {
  name: string
  /** In the words of the demand. */
  demand: string
  /** Of the setting that it is given. */
  options?: SettingOptions
  /** Only by night. */
  isNightly?: boolean
  run(setting: Setting, size: Size, course: Course): Promise<Finding[]>
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

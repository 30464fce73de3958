/** The older releases for which `triwire check --for` works. */
export const olderReleases = ['0.2'] as const

export type OlderRelease = (typeof olderReleases)[number]

import type { Deviation } from '../../src/adapter.ts'

/** What triwire does differently, each with the section of its specification that says so. */
export const deviations: readonly Deviation[] = []

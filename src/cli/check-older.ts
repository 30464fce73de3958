import { parse } from 'yaml'
import type { Config } from '../config/config.ts'
import { findNewerKeys } from '../config/newer-keys.ts'
import type { OlderRelease } from '../config/older-releases.ts'
import { lookForNewer } from '../store/open.ts'

/** Whether an older release can start with this configuration and store, and what it would ignore. */
type OlderCheck = {
  release: OlderRelease
  /** Reasons why the older release would not start. */
  refuses: readonly string[]
  /** Features that the older release would ignore, each with the consequence. */
  ignores: readonly string[]
}

/**
 * Finds what an older release cannot read. @param text the configuration as it is written
 * @throws the error of a database that does not respond
 */
export async function checkOlder(release: OlderRelease, { store }: Config, text: string): Promise<OlderCheck> {
  const keys = findNewerKeys(release, parse(text))
  const found = await lookForNewer(store)
  return {
    release,
    refuses: [
      ...keys.map((key) => `${key} is not known to it: take it away`),
      ...(found?.isClosed
        ? [
            `${store.shown} has entries of form 3 or months in archives, which it cannot read: go back with the backup of before, or stay`,
          ]
        : []),
    ],
    ignores: found?.ignored ?? [],
  }
}

/** Formats the result for people. */
export function sayOlder({ release, refuses, ignores }: OlderCheck): string {
  const list = (some: readonly string[]) => some.map((one) => `  ${one}`)
  return [
    refuses.length > 0 ? `${release} would not start:` : `${release} would start with this configuration and store.`,
    ...list(refuses),
    ...(ignores.length > 0 ? ['It would ignore:', ...list(ignores)] : []),
  ].join('\n')
}

import type { Accounts, Changes } from './accounts.ts'

type Source = Pick<Accounts, 'readDataVersion' | 'readChanges'>

/** The changes that other processes made in the store, each once. */
interface Feed {
  /** Everything that is new since the last time; undefined, and next to nothing to find out, when nobody has written. */
  read(source: Source): Changes | undefined
}

export function createFeed(): Feed {
  let revision = -1n
  let last: { source: Source; dataVersion: bigint } | undefined
  return {
    read(source) {
      // The version comes first: a change between the two readings is then read twice and not missed. It is the
      // connection's own number; one that was opened anew counts for itself.
      const dataVersion = source.readDataVersion()
      if (last?.source === source && last.dataVersion === dataVersion) return undefined
      const changes = source.readChanges(revision)
      last = { source, dataVersion }
      revision = changes.revision
      return changes
    },
  }
}

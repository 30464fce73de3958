import type { StorePlace } from '../../config/config.ts'
import type { ArchiveStore } from './end.ts'

/** Opens the store at a place, for commands that archive its months. @throws StoreError */
export async function openArchiveStore(place: StorePlace): Promise<ArchiveStore> {
  if (place.engine === 'postgres') {
    const { openPostgresArchive } = await import('./postgres-end.ts')
    return openPostgresArchive({ url: place.url.reveal(), shown: place.shown })
  }
  const { openSqliteArchive } = await import('./sqlite-end.ts')
  return openSqliteArchive(place.path)
}

import { useState } from 'preact/hooks'
import { send } from '../api/ask.ts'
import { download } from './copy.tsx'
import { say } from './toasts.tsx'

/** Downloads a text that the gateway writes, such as a whole list as comma-separated values. */
export function CsvButton({
  path,
  name,
  label,
  word = 'CSV',
}: {
  path: string
  name: string
  label?: string
  word?: string
}) {
  const [isBusy, setBusy] = useState(false)
  return (
    <button type="button" class="quiet word" aria-label={label} aria-disabled={isBusy} onClick={() => void save()}>
      {word}
    </button>
  )

  async function save(): Promise<void> {
    if (isBusy) return
    setBusy(true)
    try {
      const response = await send(path, { headers: { accept: 'text/csv, text/html' } })
      if (!response.ok) throw new Error('The gateway did not answer.')
      download(name, await response.blob())
    } catch (error) {
      say((error as Error).message, true)
    } finally {
      setBusy(false)
    }
  }
}

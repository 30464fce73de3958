import { useState } from 'preact/hooks'
import { useLoad } from '../api/load.ts'
import type { IssuedKey, Listed, Setup, SetupClient } from '../shapes.ts'
import { Code, Copy } from '../ui/copy.tsx'
import { Select } from '../ui/form.tsx'
import { Failure, Skeleton } from '../ui/states.tsx'
import { SetupTexts } from './setup-texts.tsx'

/** Shows a new key, only once, with the settings of the agent that will use it. */
export function Secret({ issued: { key, prefix }, close }: { issued: IssuedKey; close(): void }) {
  const clients = useLoad<Listed<SetupClient>>('/setup')
  const [client, setClient] = useState('')
  const setup = useLoad<Setup>(client === '' ? undefined : `/setup/${encodeURIComponent(client)}`)
  if (key === undefined)
    return (
      <>
        <p>
          The key <code>{prefix}…</code> was made before and has been shown. Rotate it for one that can be read.
        </p>
        <div class="form-foot">
          <button type="button" class="primary" onClick={close}>
            Done
          </button>
        </div>
      </>
    )
  return (
    <>
      <p>This is the key. It is shown only once, because only its digest is stored.</p>
      <div class="secret">
        <code data-secret>{key}</code>
        <Copy text={key} label="Copy key" />
      </div>
      {clients.data && (
        <Select
          label="Settings for"
          value={client}
          options={[
            ['', 'choose an agent or SDK'],
            ...clients.data.items.map(({ client, title }) => [client, title] as const),
          ]}
          onChange={setClient}
        />
      )}
      {client !== '' &&
        !setup.data &&
        (setup.refusal ? <Failure refusal={setup.refusal} retry={setup.reload} /> : <Skeleton height={120} />)}
      {client !== '' && setup.data && <SetupTexts setup={setup.data} secret={key} />}
      {client === '' && <Code label="variable" text={`export TRIWIRE_API_KEY='${key}'`} />}
      <div class="form-foot">
        <button type="button" class="primary" onClick={close}>
          I have it
        </button>
      </div>
    </>
  )
}

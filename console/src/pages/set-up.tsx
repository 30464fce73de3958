import { withQuery } from '../api/ask.ts'
import { useLoad, useSteady } from '../api/load.ts'
import { hrefOf, place, setQuery } from '../location.ts'
import { isOwner, me } from '../session.ts'
import type { Listed, ModelRow, Setup, SetupClient } from '../shapes.ts'
import { Select } from '../ui/form.tsx'
import { SearchField } from '../ui/search-field.tsx'
import { Empty, Panel, Shown } from '../ui/states.tsx'
import { SetupTexts } from './setup-texts.tsx'

/** Shows the settings with which an agent, editor or SDK uses the gateway. */
export function SetUp({ id }: { id: string | undefined }) {
  const clients = useLoad<Listed<SetupClient>>('/setup')
  return (
    <Shown of={clients} height={120} lines={2}>
      {({ items }) => (
        <div class="split open">
          <nav class="first choices" aria-label="Agents, editors and SDKs">
            {items.map(({ client, title }) => (
              <a
                key={client}
                href={hrefOf({ page: 'setup', id: client, query: place.value.query })}
                aria-current={client === id ? 'true' : undefined}
              >
                {title}
              </a>
            ))}
          </nav>
          <div class="second">
            {id === undefined ? (
              <Empty>Choose an agent, editor or SDK to see its settings, ready to be copied.</Empty>
            ) : (
              <Client client={items.find(({ client }) => client === id) ?? { client: id, title: id }} key={id} />
            )}
          </div>
        </div>
      )}
    </Shown>
  )
}

function Client({ client: { client, title } }: { client: Pick<SetupClient, 'client' | 'title'> }) {
  const { model, url } = place.value.query
  const setup = useSteady<Setup>(withQuery(`/setup/${encodeURIComponent(client)}`, { model, url }))
  return (
    <Panel
      title={title}
      tools={
        <>
          <SearchField label="Another address" name="url" />
          <ModelChoice model={model} />
        </>
      }
    >
      <div class="pad">
        {isOwner() && me.value?.role && <WithoutKey client={client} url={setup.data?.base_url} />}
        <p class="small">
          Set the variable <code>TRIWIRE_API_KEY</code> to your key in that shell, or put the key in its place; files
          need the key itself. The command line says the same: <code>triwire setup {client}</code>
        </p>
        <Shown of={setup} height={160}>
          {(shown) => <SetupTexts setup={shown} />}
        </Shown>
      </div>
    </Panel>
  )
}

/** Shows the commands for people who have signed in and need no key: they sign in and set the agent up. */
function WithoutKey({ client, url = 'ADDRESS' }: { client: string; url: string | undefined }) {
  return (
    <p class="note">
      You have signed in, so you need no key:{' '}
      <code>
        triwire setup {client} --login --url {url} --write
      </code>{' '}
      signs you in on your machine and sets it up. With a key instead:
    </p>
  )
}

function ModelChoice({ model }: { model: string | undefined }) {
  const models = useLoad<Listed<ModelRow>>(isOwner() ? undefined : '/models')
  const own = me.value?.kind === 'owner' ? me.value.models : undefined
  const ids = own ?? (models.data?.items ?? []).map(({ id }) => id)
  return (
    <Select
      label="Model"
      hidesLabel
      value={model ?? ''}
      options={[['', 'first model'], ...ids.map((id) => [id, id] as const)]}
      onChange={(next) => setQuery({ model: next || undefined }, 'replace')}
    />
  )
}

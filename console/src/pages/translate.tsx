import { useEffect, useState } from 'preact/hooks'
import { act } from '../api/act.ts'
import { useLoad } from '../api/load.ts'
import { place, setQuery } from '../location.ts'
import { type ClientWire, clientWireNames, questionBody, spread } from '../pure/wires.ts'
import type { Listed, ModelRow, Translation } from '../shapes.ts'
import { Code, Copy } from '../ui/copy.tsx'
import { useDraft } from '../ui/draft.ts'
import { FormRefusal, Select, useForm } from '../ui/form.tsx'
import { Empty, Failure, Panel, Skeleton } from '../ui/states.tsx'
import { Words } from '../ui/words.tsx'
import { Losses } from './explain.tsx'

/** Shows the request that a model would get for a client's request, and the outcome of each field. Nothing is sent. */
export function Translate() {
  const models = useLoad<Listed<ModelRow>>('/models')
  const [told, setTold] = useState<Translation | undefined>(undefined)
  if (models.refusal) return <Failure refusal={models.refusal} retry={models.reload} />
  if (!models.data) return <Skeleton height={200} lines={2} />
  return (
    <div class="workbench">
      <Composer models={models.data.items} tell={setTold} />
      <div class="results">
        {told ? <Told of={told} /> : <Empty>The request for the model is shown here. Nothing is sent or stored.</Empty>}
      </div>
    </div>
  )
}

const samples: Record<ClientWire, (model: string) => object> = {
  messages: (model) => ({
    ...questionBody('messages', model, 'What is the weather in Bergen?', true),
    system: [{ type: 'text', text: 'Answer in one sentence.', cache_control: { type: 'ephemeral' } }],
    tools: [
      {
        name: 'weather',
        description: 'of a place',
        input_schema: { type: 'object', properties: { place: { type: 'string' } } },
      },
    ],
    top_k: 40,
  }),
  chat: (model) => ({
    ...questionBody('chat', model, 'What is the weather in Bergen?', true),
    seed: 7,
    logit_bias: { '50256': -100 },
  }),
  responses: (model) => ({
    ...questionBody('responses', model, 'What is the weather in Bergen?', true),
    instructions: 'Answer in one sentence.',
    reasoning: { effort: 'low' },
  }),
}

function Composer({ models, tell }: { models: readonly ModelRow[]; tell(told: Translation | undefined): void }) {
  const { query } = place.value
  const from = clientWireNames.find((wire) => wire === query['from']) ?? 'messages'
  const model = query['model'] ?? models.find(({ wire }) => wire !== from)?.id ?? models[0]?.id ?? ''
  const [{ own, answer }, change] = useDraft<{ own: string | undefined; answer: string; from: string }>(
    'translate',
    { own: undefined, answer: '', from },
    (kept) => (kept.from === from ? kept : { own: undefined, answer: '', from }),
  )
  useEffect(() => change({ from }), [from])
  const body = own ?? JSON.stringify(samples[from](model), null, 2)
  const { refusal, isBusy, errorOf, send } = useForm()
  return (
    <form
      class="panel composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send(async () => {
          tell(undefined)
          tell((await act<Translation>('/translate', { from, model, body, answer })).body)
        })
      }}
    >
      <header>
        <h2>Request</h2>
      </header>
      <div class="fields">
        <Select
          label="From wire"
          value={from}
          options={clientWireNames.map((wire) => [wire, wire] as const)}
          onChange={(next) => setQuery({ from: next }, 'replace')}
        />
        <Select
          label="To model"
          value={model}
          options={models.map(({ id, wire }) => [id, `${id} (${wire})`] as const)}
          onChange={(next) => setQuery({ model: next }, 'replace')}
        />
      </div>
      <div class="field">
        <label for="request">
          Body <span class="unit">JSON of the client</span>
        </label>
        <textarea
          id="request"
          class="mono"
          rows={18}
          spellcheck={false}
          value={body}
          onInput={(event) => change({ own: event.currentTarget.value })}
        />
        {errorOf('body') && <p class="bad small">{errorOf('body')}</p>}
      </div>
      <details>
        <summary>And an answer of the model</summary>
        <div class="field">
          <label for="answer">
            Answer <span class="unit">a stream as text, or JSON</span>
          </label>
          <textarea
            id="answer"
            class="mono"
            rows={6}
            spellcheck={false}
            value={answer}
            onInput={(event) => change({ answer: event.currentTarget.value })}
          />
        </div>
      </details>
      <FormRefusal refusal={refusal} fields={['body']} />
      <div class="form-foot">
        {own !== undefined && (
          <button key="reset" type="button" onClick={() => change({ own: undefined })}>
            Sample again
          </button>
        )}
        <button type="submit" class="primary" aria-disabled={isBusy}>
          Translate
        </button>
      </div>
    </form>
  )
}

const order = ['refused', 'dropped', 'mapped', 'added', 'carried']

function Told({ of: told }: { of: Translation }) {
  if (!told.ok) {
    const { status, code, param, message } = told.refusal!
    return (
      <Panel title="Refused" unit={`${status} ${code}`}>
        <div class="pad">
          <p class="bad">
            <Words text={message} />
          </p>
          {param && (
            <p class="small">
              at <code>{param}</code>
            </p>
          )}
          <p class="small">This is the error that the client would get. The model would not be asked.</p>
        </div>
      </Panel>
    )
  }
  const fields = [...(told.fields ?? [])] as { field: string; what: string; why: string }[]
  fields.sort((a, b) => order.indexOf(a.what) - order.indexOf(b.what))
  const counts = order
    .map((what) => [what, fields.filter((one) => one.what === what).length] as const)
    .filter(([, count]) => count > 0)
  return (
    <>
      {told.body !== undefined && (
        <Panel
          title="Upstream body"
          unit={`${told.from} to ${told.to}: ${told.model}, served by ${told.upstream}`}
          tools={<Copy text={told.body} label="Copy as sent" />}
        >
          <p class="pad small">
            <code>POST {told.path}</code>
          </p>
          <Code text={spread(told.body)} label="upstream body" />
        </Panel>
      )}
      {fields.length > 0 && (
        <Panel title="Fields" unit={counts.map(([what, count]) => `${count} ${what}`).join(', ')}>
          <Losses losses={fields} />
        </Panel>
      )}
      {told.losses && told.losses.length > 0 && (
        <Panel title="Losses" unit="as in the log">
          <Losses losses={told.losses} />
        </Panel>
      )}
      {told.headers && told.headers.length > 0 && (
        <Panel title="Headers" unit="all but the credential">
          <Code text={told.headers.map(([name, value]) => `${name}: ${value}`).join('\n')} label="headers" />
        </Panel>
      )}
      {told.answer && (
        <Panel title="Answer" unit="as its client sees it">
          <Code text={spread(String(told.answer['body'] ?? JSON.stringify(told.answer)))} label="answer" />
        </Panel>
      )}
    </>
  )
}

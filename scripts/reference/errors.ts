import type { ErrorCode } from '../../src/errors.ts'

export type Row = { cause: string; cure: string }

/** Every code that a client can get, by subject, with its cause and its cure for the one who reads it. */
export const errorRows: Readonly<Record<string, Partial<Record<ErrorCode, Row>>>> = {
  'The request': {
    invalid_body: {
      cause: 'The body is not one JSON object, or a checked field has the wrong type. `param` names the field.',
      cure: 'Correct the field. `triwire translate` shows what would be sent.',
    },
    invalid_cache_key: {
      cause: '`prompt_cache_key` or `x-session-id` is longer than 256 characters.',
      cure: 'Send a shorter key, such as a digest.',
    },
    unsupported_parameter: {
      cause: 'The model, or the wire that it speaks, cannot do what the field asks for.',
      cure: 'Leave the field out, or name another model ([translation](translation/README.md)).',
    },
    invalid_request: {
      cause: 'The model refused the request, in its words; or `x-triwire-labels` has a label that is not declared.',
      cure: 'Do what the sentence says. A model may refuse with 404 or 422 too.',
    },
    request_too_large: {
      cause: 'The body is larger than `limits.body_bytes_max`.',
      cure: 'Send less, or ask the operator to raise the limit ([sizes](limits.md#sizes)).',
    },
    unknown_url: {
      cause: 'Nothing is served at this path and method.',
      cure: 'Correct the base URL: `triwire setup CLIENT` prints it.',
    },
  },
  'The key and the account': {
    invalid_api_key: {
      cause: 'The key is missing, unknown, expired or revoked.',
      cure: 'Check it for typing errors. `triwire key show PREFIX` says its state.',
    },
    account_suspended: {
      cause: 'The account is suspended, or is the demo account while real models are served.',
      cure: '`triwire account activate ACCOUNT`; for the demo, give it credit and reload.',
    },
    model_not_found: {
      cause: 'The model is not in the catalog, or the key may not use it.',
      cure: '`GET /v1/models` lists the names; `key set --models` lets a key use more.',
    },
    insufficient_credits: {
      cause: 'The balance or a budget is spent, or requests that run hold the rest. The sentence says which.',
      cure: 'Add credit, raise the budget, or wait for its next window ([402](limits.md#402-no-credit-or-budget-left)).',
    },
  },
  'Too much at once': {
    rate_limit_exceeded: {
      cause:
        'The window of the account, the person or the key is full, the model has no capacity, or the gateway is overloaded.',
      cure: 'Wait for `retry-after` seconds. For a team, raise `account set --rpm`.',
    },
    too_many_failed_auth: {
      cause: 'Too many wrong keys came from this address in a minute.',
      cure: 'Wait a minute, with a valid key. Behind a proxy, name it in `trusted_proxies`.',
    },
  },
  'The service and the model': {
    upstream_error: {
      cause: "The model's endpoint failed, or cannot be reached.",
      cure: 'Try again. The operator finds the `cause` by `triwire explain` ([causes](operating.md#logs)).',
    },
    no_upstream_account: {
      cause: 'Every upstream account of the model is off, or is left alone after failures.',
      cure: 'Try again later. `triwire upstreams` shows why and until when.',
    },
    internal_error: {
      cause: 'The store cannot be written, the clock is in doubt, the server stops, or it has a bug.',
      cure: 'Try again. The operator looks at `triwire status` and the log.',
    },
  },
}

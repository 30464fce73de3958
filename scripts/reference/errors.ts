import type { ErrorCode } from '../../src/errors.ts'

export type Row = { cause: string; cure: string }

/** Every code that a client can get, by subject, with its cause and its cure for the reader. */
export const errorRows: Readonly<Record<string, Partial<Record<ErrorCode, Row>>>> = {
  'The request': {
    invalid_body: {
      cause:
        'The body is not one JSON object, or a field has the wrong type, or the model or its wire does not support a field. `param` names the field. If the HTTP request itself is invalid or too slow, the status is 400, 408, 417 or 431.',
      cure: 'Correct the field, leave it out, or request another model ([translation](translation/README.md)). `triwire translate` shows the request that the model would get.',
    },
    invalid_cache_key: {
      cause: '`prompt_cache_key` or `x-session-id` is longer than 256 characters.',
      cure: 'Send a shorter key, such as a digest.',
    },
    unsupported_parameter: {
      cause:
        'A request for `/v1/responses` refers to something stored: `previous_response_id`, `conversation`, `background: true`, or a reference in `input`.',
      cure: 'Leave the field out, and send the whole conversation in `input`. triwire stores nothing between requests, for no model.',
    },
    invalid_request: {
      cause:
        'The model refused the request, and the message is its own. Or `x-triwire-labels` has a label that is not declared, or that the key may not choose.',
      cure: 'Do what the message says. If the model refused with 404 or 422, the error has that status.',
    },
    request_too_large: {
      cause: 'The body is larger than `limits.body_bytes_max`.',
      cure: 'Send less, or ask the operator to raise the limit ([sizes](limits.md#sizes)).',
    },
    unknown_url: {
      cause: 'This path is not served with this method. A WebSocket handshake at `/v1/responses` gets the status 426.',
      cure: 'Correct the base URL. `triwire setup CLIENT` prints the right one.',
    },
  },
  'The key and the account': {
    invalid_api_key: {
      cause: 'The key is missing, unknown, expired or revoked.',
      cure: 'Check the key for typing errors. `triwire key show PREFIX` shows its state.',
    },
    account_suspended: {
      cause: 'The account is suspended. Or it is the demo account, and the gateway serves real models.',
      cure: 'Run `triwire account activate ACCOUNT`. For the demo account, add credit and reload the configuration.',
    },
    model_not_found: {
      cause: 'The model is not in the catalog, or the key may not use it.',
      cure: '`GET /v1/models` lists the models. `triwire key set --models` allows a key more models.',
    },
    insufficient_credits: {
      cause:
        'The balance or a budget is spent, or the rest of it is reserved for running requests. The message says which.',
      cure: 'Add credit, raise the budget, or wait until the budget renews ([402](limits.md#402-no-credit-or-budget-left)).',
    },
  },
  'Too much at once': {
    rate_limit_exceeded: {
      cause:
        'The account, the person or the key has used up its requests for this minute. Or the model has no capacity, or the gateway is overloaded.',
      cure: 'Wait for `retry-after` seconds. `triwire account set --rpm` raises the limit of an account.',
    },
    too_many_failed_auth: {
      cause: 'This address sent too many wrong keys in a minute.',
      cure: 'Wait a minute, then send a valid key. If clients reach triwire through a proxy, add the proxy to `trusted_proxies`.',
    },
  },
  'The service and the model': {
    upstream_error: {
      cause: "The model's server failed, or cannot be reached.",
      cure: 'Try again. `triwire explain` shows the operator the `cause` ([causes](operating.md#logs)).',
    },
    no_upstream_account: {
      cause: 'Every upstream account of the model (an account at a provider) is disabled, or paused after failures.',
      cure: 'Try again later. `triwire upstreams` shows the reason and the end of the pause.',
    },
    internal_error: {
      cause: 'The store cannot be written, the clock may be wrong, the server is being stopped, or triwire has a bug.',
      cure: 'Try again. `triwire status` and the log show the operator the cause.',
    },
  },
}

/** Gateways that were looked for in the registries in November 2026 and are not measured, with the reasons. */
export const refused: readonly { name: string; why: string }[] = [
  {
    name: 'Bifrost (Go)',
    why: 'the Go module proxy refuses its modules (`github.com/maximhq/bifrost/transports` and `core`, 403); the npm package `@maximhq/bifrost` has no program in it and downloads one.',
  },
  { name: 'agentgateway (Rust)', why: 'it is no crate; the PyPI package of that name is something else.' },
  { name: 'new-api (Go)', why: 'the Go module proxy refuses it under both of its paths (403).' },
  { name: 'one-api (Go)', why: 'the Go module proxy refuses `github.com/songquanpeng/one-api` (403).' },
  { name: 'GoModel (Go)', why: 'the Go module proxy refuses `github.com/ENTERPILOT/GoModel` (403).' },
]

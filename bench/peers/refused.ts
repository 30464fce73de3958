/** Gateways that were looked for in the registries in November 2026 and are not measured, with the reasons. */
export const refused: readonly { name: string; why: string }[] = [
  {
    name: 'Bifrost (Go)',
    why: 'the Go module proxy refuses its modules (`github.com/maximhq/bifrost/transports` and `core`, 403). The npm package `@maximhq/bifrost` does not contain the program, but downloads it.',
  },
  {
    name: 'agentgateway (Rust)',
    why: 'it is not published as a crate, and the PyPI package with this name is a different program.',
  },
  { name: 'new-api (Go)', why: 'the Go module proxy refuses both of its module paths (403).' },
  { name: 'one-api (Go)', why: 'the Go module proxy refuses `github.com/songquanpeng/one-api` (403).' },
  { name: 'GoModel (Go)', why: 'the Go module proxy refuses `github.com/ENTERPILOT/GoModel` (403).' },
]

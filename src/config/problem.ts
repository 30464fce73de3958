/** One thing that is wrong with the configuration. */
export type ConfigProblem = {
  /** The key, as `catalog.models[0].id`; the flag or the environment variable; empty: the file as a whole. */
  path: string
  /** The 1-based line in the file. */
  line?: number
  /** A sentence that names the key and the cure, and never a value: it may be a secret. */
  message: string
}

/** The configuration cannot be used. It carries everything that is wrong with it, in the order of the file. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  /** @param file how the file is called in the message, where there is one. */
  constructor(problems: readonly ConfigProblem[], file?: string) {
    const lines = problems.map(({ line, message }) => (file && line ? `${file}:${line}: ${message}` : message))
    super(lines.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** One thing that is wrong with the configuration. */
export type ConfigProblem = {
  /** The key, as `catalog.models[0].id`; or the flag, or the environment variable; empty for the whole file. */
  path: string
  /** The 1-based line in the file. */
  line?: number
  /** A sentence with the key and the cure, and never a value, which may be a secret. */
  message: string
}

/** The configuration cannot be used. Contains everything that is wrong, in the order of the file. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  /** @param file the name of the file in the message, if there is one */
  constructor(problems: readonly ConfigProblem[], file?: string) {
    const lines = problems.map(({ line, message }) => (file && line ? `${file}:${line}: ${message}` : message))
    super(lines.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** A mistake in the configuration. */
export type ConfigProblem = {
  /** The key, such as `catalog.models[0].id`, or the flag or variable that sets it. Empty for the whole file. */
  path: string
  /** The 1-based line in the file. */
  line?: number
  /** A sentence that names the key and what to change. It never quotes the value, which may be a secret. */
  message: string
}

/** Thrown for an invalid configuration. The error contains all mistakes, in the order of the file. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  /** @param file the name of the file for the message, if there is a file */
  constructor(problems: readonly ConfigProblem[], file?: string) {
    const lines = problems.map(({ line, message }) => (file && line ? `${file}:${line}: ${message}` : message))
    super(lines.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

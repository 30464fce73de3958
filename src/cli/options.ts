/** What is typed before or after any command. */
export type GlobalOptions = { config?: string; store?: string; json?: boolean }

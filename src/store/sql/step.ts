import { type Dialect, type Put, type Statement, statement } from './dialect.ts'

/** A row as a driver returns it, by the names of its columns. Integers of 64 bits are bigint. */
export type Row = Record<string, unknown>

/** Another step, all of whose statements run in one transaction: one that writes, or one that reads one moment. */
type Transacted = { step: StoreStep<unknown>; isWriting: boolean }

/**
 * A question about the store, written once for both databases. The step yields statements, gets their rows, and returns the
 * answer. The driver of SQLite runs a step synchronously, that of PostgreSQL asynchronously. A failed statement ends the step.
 */
export type StoreStep<T> = Generator<Statement | Transacted, T, unknown>

/** A statement, and how one of its rows is read. */
export type Query<T> = Statement & { read(row: Row): T }

export function query<T>(dialect: Dialect, read: (row: Row) => T, write: (put: Put) => string): Query<T> {
  return { ...statement(dialect, write), read }
}

/** Runs a statement. @returns its rows */
export function* rowsOf(one: Statement): StoreStep<Row[]> {
  return (yield one) as Row[]
}

/** Asks by a statement that the caller writes; `put` puts a value into it. */
export function ask(dialect: Dialect, write: (put: Put) => string): StoreStep<Row[]> {
  return rowsOf(statement(dialect, write))
}

/** The same for a statement that has one row at most, or whose first row is wanted. */
export function* askOne(dialect: Dialect, write: (put: Put) => string): StoreStep<Row | undefined> {
  return (yield* ask(dialect, write))[0]
}

export function* all<T>(query: Query<T>): StoreStep<T[]> {
  return (yield* rowsOf(query)).map(query.read)
}

export function* first<T>(query: Query<T>): StoreStep<T | undefined> {
  return (yield* all(query))[0]
}

/** Runs statements one after the other. */
export function* runAll(statements: Iterable<Statement>): StoreStep<void> {
  for (const one of statements) yield one
}

/** Runs a statement whose rows nobody wants. */
export function* execute(dialect: Dialect, write: (put: Put) => string): StoreStep<void> {
  yield* ask(dialect, write)
}

/** Inside a transaction that is open already, the step joins it. */
export function* inTransaction<T>(step: StoreStep<T>): StoreStep<T> {
  return (yield { step, isWriting: true }) as T
}

/** The same for a step that only reads: all that it reads is of one moment. */
export function* inSnapshot<T>(step: StoreStep<T>): StoreStep<T> {
  return (yield { step, isWriting: false }) as T
}

type StoreQuestions = Readonly<Record<string, (...args: never[]) => StoreStep<unknown>>>

/** The same questions, asked of one store that answers at once. */
type StoreAnswers<Q extends StoreQuestions> = {
  [Name in keyof Q]: Q[Name] extends (...args: infer Args) => StoreStep<infer T> ? (...args: Args) => T : never
}

/** The same methods, with promises of what they return. */
type Promised<A> = {
  [Name in keyof A]: A[Name] extends (...args: infer Args) => infer T ? (...args: Args) => Promise<Awaited<T>> : never
}

/** @param run the driver. */
export function answering<Q extends StoreQuestions>(
  questions: Q,
  run: (step: StoreStep<unknown>) => unknown,
): StoreAnswers<Q> {
  const methods = Object.entries(questions).map(([name, ask]) => [name, (...args: never[]) => run(ask(...args))])
  return Object.fromEntries(methods) as StoreAnswers<Q>
}

/** The methods with promises. An error that a method throws rejects its promise. */
export function promising<A extends object>(answers: A): Promised<A> {
  const methods = Object.entries(answers).map(([name, answer]) => [name, async (...args: never[]) => answer(...args)])
  return Object.fromEntries(methods) as Promised<A>
}

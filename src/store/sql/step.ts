import { type Dialect, type Put, type Statement, statement } from './dialect.ts'

/** A row as the driver returns it, by column names. Integers of 64 bits are bigint. */
export type Row = Record<string, unknown>

/**
 * A step that another step runs in a transaction. Without `isWriting`, all its statements read one snapshot of the
 * store.
 */
type Transacted = { step: StoreStep<unknown>; isWriting: boolean }

/**
 * A query or change of the store, written once for both databases. The step yields statements, receives their rows, and
 * returns the result. The driver of SQLite runs a step synchronously, and the driver of PostgreSQL runs it
 * asynchronously. A failed statement ends the step.
 */
export type StoreStep<T> = Generator<Statement | Transacted, T, unknown>

/** A statement, and a function that reads one of its rows. */
export type Query<T> = Statement & { read(row: Row): T }

export function query<T>(dialect: Dialect, read: (row: Row) => T, write: (put: Put) => string): Query<T> {
  return { ...statement(dialect, write), read }
}

/** Runs a statement. @returns its rows */
export function* rowsOf(one: Statement): StoreStep<Row[]> {
  return (yield one) as Row[]
}

/** Runs a statement that `write` makes; `put` adds a value to it. @returns its rows */
export function ask(dialect: Dialect, write: (put: Put) => string): StoreStep<Row[]> {
  return rowsOf(statement(dialect, write))
}

/** Runs a statement like `ask`. @returns the first row, if there is one */
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

/** Runs a statement without returning its rows. */
export function* execute(dialect: Dialect, write: (put: Put) => string): StoreStep<void> {
  yield* ask(dialect, write)
}

/** Runs a step in a transaction. If a transaction is open already, the step joins it. */
export function* inTransaction<T>(step: StoreStep<T>): StoreStep<T> {
  return (yield { step, isWriting: true }) as T
}

/** Runs a step that only reads. All its statements see the data of the same moment. */
export function* inSnapshot<T>(step: StoreStep<T>): StoreStep<T> {
  return (yield { step, isWriting: false }) as T
}

type StoreQuestions = Readonly<Record<string, (...args: never[]) => StoreStep<unknown>>>

/** The queries of `Q` as methods of one store. A method runs its query and returns the result, not a step. */
type StoreAnswers<Q extends StoreQuestions> = {
  [Name in keyof Q]: Q[Name] extends (...args: infer Args) => StoreStep<infer T> ? (...args: Args) => T : never
}

/** The methods of `A`, each with a promise as its result. */
type Promised<A> = {
  [Name in keyof A]: A[Name] extends (...args: infer Args) => infer T ? (...args: Args) => Promise<Awaited<T>> : never
}

/** Turns queries into methods of one store. @param run the function that runs the steps of a query in the store */
export function answering<Q extends StoreQuestions>(
  questions: Q,
  run: (step: StoreStep<unknown>) => unknown,
): StoreAnswers<Q> {
  const methods = Object.entries(questions).map(([name, ask]) => [name, (...args: never[]) => run(ask(...args))])
  return Object.fromEntries(methods) as StoreAnswers<Q>
}

/** Turns methods into methods that return promises. If a method throws an error, the promise rejects with it. */
export function promising<A extends object>(answers: A): Promised<A> {
  const methods = Object.entries(answers).map(([name, answer]) => [name, async (...args: never[]) => answer(...args)])
  return Object.fromEntries(methods) as Promised<A>
}

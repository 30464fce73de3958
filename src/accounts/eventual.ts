/**
 * A value that is there, or one that will be. Behind an interface that may stand for memory or for another machine: what
 * is there is used at once, so that memory costs no turn of the event loop.
 */
export type Eventual<T> = T | Promise<T>

/** What `use` makes of the value: now when it is there, else when it comes. */
export function whenThere<T, R>(value: Eventual<T>, use: (value: T) => Eventual<R>): Eventual<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}

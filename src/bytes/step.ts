/**
 * A resumable function. The caller passes inputs one by one to `push`, then calls `end`. The function does no I/O and
 * never awaits.
 */
export type Step<In, Out> = { push(input: In): Iterable<Out>; end(): Iterable<Out> }

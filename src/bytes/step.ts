/** A resumable function: feed it inputs one by one, then end it. It does no I/O and never awaits. */
export type Step<In, Out> = { push(input: In): Iterable<Out>; end(): Iterable<Out> }

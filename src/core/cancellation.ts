/** Tells work whether its result is still needed. An `AbortSignal` is one. */
export type Cancellation = Pick<AbortSignal, 'aborted' | 'reason' | 'throwIfAborted'>

/** What to call at the end of this turn, in order. */
let callbacks: (() => void)[] = []

/**
 * Calls back after the events that have already arrived are handled. A callback may add further ones, which belong to the same turn. No callback
 * may throw.
 */
export function atEndOfTurn(callback: () => void): void {
  if (callbacks.push(callback) === 1) setImmediate(endTurn)
}

function endTurn(): void {
  // Also visits what is added meanwhile.
  for (const callback of callbacks) callback()
  callbacks = []
}

/** Returns the FNV-1a hash of a text: a whole number from 0 to 2^32 − 1. Fast, but not for security. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0
  return hash
}

import { parse } from 'lossless-json'
import { INT64_MAX } from '../../../core/int64.js'

/** Digits of the largest int64: a number with more before its point is out of range, whatever they are. */
const INT64_DIGITS = INT64_MAX.toString().length

/**
 * Parses JSON without losing a digit: a number whose value is whole becomes a bigint, however it is spelt (`7`, `7.0`, `7e0`);
 * any other, and any with more digits than an int64 has, becomes a number. Throws a SyntaxError, also for a key given twice with
 * different values, and for more than `maxDepth` levels of arrays and objects.
 */
export function parseLosslessJson(text: string, maxDepth: number): unknown {
  if (depthExceeds(text, maxDepth)) throw new SyntaxError(`More than ${maxDepth} levels of nesting`)
  return parse(text, undefined, wholeOrNumber)
}

function wholeOrNumber(literal: string): bigint | number {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  const digits = withoutTrailingZeros(whole + fraction)
  const significant = digits.replace(/^0+/, '')
  if (significant === '') return 0n
  // How many digits stand before the point once the exponent has moved it.
  const before = whole.length + Number(exponent) - (digits.length - significant.length)
  if (significant.length > before || before > INT64_DIGITS) return Number(literal)
  return BigInt(sign + significant.padEnd(before, '0'))
}

/** By hand: on long runs of zeros a pattern would try each of them as the first. */
function withoutTrailingZeros(digits: string): string {
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  return digits.slice(0, end)
}

/** Counts brackets outside of strings; whether the text is JSON at all is the parser's to say. */
function depthExceeds(text: string, maxDepth: number): boolean {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length && depth <= maxDepth; index += 1) {
    const character = text[index]
    if (character === '"') inString = !inString
    else if (inString) index += character === '\\' ? 1 : 0
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
  }
  return depth > maxDepth
}

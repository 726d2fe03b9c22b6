import { parse } from 'lossless-json'
import { INT64_MAX } from '../../../core/int64.js'

/** A number with more integer digits than this is outside the range of int64. */
const INT64_DIGITS = INT64_MAX.toString().length

/**
 * Parses JSON without rounding whole numbers: these become bigints, in any notation (`7`, `7.0`, `7e0`). Other numbers, and those with
 * more integer digits than an int64, become numbers. Throws a `SyntaxError` if the JSON is invalid, if a key is repeated with different
 * values, or if arrays and objects are nested more than `maxDepth` levels deep.
 */
export function parseLosslessJson(text: string, maxDepth: number): unknown {
  if (exceedsDepth(text, maxDepth)) throw new SyntaxError(`More than ${maxDepth} levels of nesting`)
  return parse(text, undefined, parseNumber)
}

function parseNumber(literal: string): bigint | number {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  const digits = removeTrailingZeros(whole + fraction)
  const significant = digits.replace(/^0+/, '')
  if (significant === '') return 0n
  // The number of digits before the decimal point after the exponent is applied.
  const integerDigits = whole.length + Number(exponent) - (digits.length - significant.length)
  if (significant.length > integerDigits || integerDigits > INT64_DIGITS) return Number(literal)
  return BigInt(sign + significant.padEnd(integerDigits, '0'))
}

/** Uses no regular expression, because that would take quadratic time for long runs of zeros. */
function removeTrailingZeros(digits: string): string {
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  return digits.slice(0, end)
}

/** Counts the brackets outside of strings. The text may be invalid JSON, which the parser detects. */
function exceedsDepth(text: string, maxDepth: number): boolean {
  let depth = 0
  let isInString = false
  for (let index = 0; index < text.length && depth <= maxDepth; index += 1) {
    const character = text[index]
    if (character === '"') isInString = !isInString
    else if (isInString) index += character === '\\' ? 1 : 0
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
  }
  return depth > maxDepth
}

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync } from '@swc/core'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options'

export interface Violation {
  rule: string
  /** Relative to the root, with forward slashes. */
  file: string
  detail: string
}

/** Applies the import rules of the repository, which is the working directory, to the sources under `root`/src. */
export async function architectureViolations(root: string): Promise<Violation[]> {
  const rulesFile = join(process.cwd(), '.dependency-cruiser.mjs')
  const { requiredPaths } = (await import(pathToFileURL(rulesFile).href)) as { requiredPaths: string[] }
  const files = sourceFiles(root)
  const empty = requiredPaths.filter((place) => !files.some((file) => file.startsWith(place)))
  return [
    ...empty.map((place) => ({ rule: 'rules-speak-of-something', file: place, detail: 'holds no file, so that its rules could not fail' })),
    ...(files.length > 0 ? await importViolations(root, rulesFile, files) : []),
    ...files.flatMap((file) => hiddenViolations(file, readFileSync(join(root, file), 'utf8'))),
  ]
}

async function importViolations(root: string, rulesFile: string, files: string[]): Promise<Violation[]> {
  const options = await extractDepcruiseOptions(rulesFile)
  const { output } = await cruise(['src'], { ...options, baseDir: root })
  const { modules, summary } = output as ICruiseResult
  const seen = new Set(modules.map((module) => module.source))
  const overlooked = files.filter((file) => !seen.has(file))
  return [
    ...overlooked.map((file) => ({ rule: 'rules-see-every-file', file, detail: 'was not read by the cruiser' })),
    ...summary.violations.map(({ rule, from, to }) => ({ rule: rule.name, file: from, detail: `imports ${to}` })),
  ]
}

type SyntaxNode = Record<string, unknown>

/** What dependency-cruiser does not see: imports that are no statements, and the environment read through a global. */
function hiddenViolations(file: string, text: string): Violation[] {
  const found: Violation[] = []
  const visit = (node: unknown, parent: SyntaxNode): void => {
    if (Array.isArray(node)) return node.forEach((child) => visit(child, parent))
    if (typeof node !== 'object' || node === null) return
    const syntax = node as SyntaxNode
    if (isTypeImport(syntax) || isComputedImport(syntax)) {
      found.push({ rule: 'imports-are-statements', file, detail: 'hides an import in a type or an expression' })
    }
    if (file !== 'src/config.ts' && mayReadEnvironment(syntax, parent)) {
      found.push({ rule: 'only-settings-read-the-environment', file, detail: 'reads process.env, or hands process on' })
    }
    Object.values(syntax).forEach((child) => visit(child, syntax))
  }
  visit(parseSync(text, { syntax: 'typescript', decorators: true, target: 'es2022' }), {})
  return found
}

function isTypeImport(node: SyntaxNode): boolean {
  return node['type'] === 'TsImportType'
}

function isComputedImport(node: SyntaxNode): boolean {
  if (node['type'] !== 'CallExpression' || (node['callee'] as SyntaxNode)['type'] !== 'Import') return false
  const [argument] = node['arguments'] as { expression: SyntaxNode }[]
  return argument?.expression['type'] !== 'StringLiteral'
}

/** Every mention of the global but `process.exit` and the like: whoever holds `process` itself holds its `env` too. */
function mayReadEnvironment(node: SyntaxNode, parent: SyntaxNode): boolean {
  if (!isNamed(node, 'process')) return false
  if (parent['type'] === 'MemberExpression') {
    if (parent['object'] === node) return (parent['property'] as SyntaxNode)['type'] !== 'Identifier' || isNamed(parent['property'], 'env')
    return isNamed(parent['object'], 'globalThis') || isNamed(parent['object'], 'global')
  }
  const namesAMember = parent['key'] === node && parent['type'] !== 'AssignmentPatternProperty'
  return !namesAMember
}

function isNamed(node: unknown, name: string): boolean {
  const { type, value } = node as SyntaxNode
  return type === 'Identifier' && value === name
}

function sourceFiles(root: string): string[] {
  if (!existsSync(join(root, 'src'))) return []
  return readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .sort()
}

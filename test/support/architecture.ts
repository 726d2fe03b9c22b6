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

/** Applies the import rules in the working directory, which is the repository, to the sources in `root`/src. */
export async function findArchitectureViolations(root: string): Promise<Violation[]> {
  const rulesFile = join(process.cwd(), '.dependency-cruiser.mjs')
  const { requiredPaths } = (await import(pathToFileURL(rulesFile).href)) as { requiredPaths: string[] }
  const files = listSourceFiles(root)
  const empty = requiredPaths.filter((place) => !files.some((file) => file.startsWith(place)))
  return [
    ...empty.map((place) => ({ rule: 'rules-apply-to-files', file: place, detail: 'contains no file, so its rules could not fail' })),
    ...(files.length > 0 ? await findImportViolations(root, rulesFile, files) : []),
    ...files.flatMap((file) => findHiddenViolations(file, readFileSync(join(root, file), 'utf8'))),
  ]
}

async function findImportViolations(root: string, rulesFile: string, files: string[]): Promise<Violation[]> {
  const options = await extractDepcruiseOptions(rulesFile)
  const { output } = await cruise(['src'], { ...options, baseDir: root })
  const { modules, summary } = output as ICruiseResult
  const cruised = new Set(modules.map((module) => module.source))
  const missed = files.filter((file) => !cruised.has(file))
  return [
    ...missed.map((file) => ({ rule: 'rules-see-every-file', file, detail: 'was not read by dependency-cruiser' })),
    ...summary.violations.map(({ rule, from, to }) => ({ rule: rule.name, file: from, detail: `imports ${to}` })),
  ]
}

type SyntaxNode = Record<string, unknown>

/** Finds what dependency-cruiser does not find: imports that are not statements, and reads of the environment through a global. */
function findHiddenViolations(file: string, text: string): Violation[] {
  const found: Violation[] = []
  const visit = (node: unknown, parent: SyntaxNode): void => {
    if (Array.isArray(node)) return node.forEach((child) => visit(child, parent))
    if (typeof node !== 'object' || node === null) return
    const syntax = node as SyntaxNode
    if (isTypeImport(syntax) || isComputedImport(syntax)) {
      found.push({ rule: 'imports-are-statements', file, detail: 'hides an import in a type or an expression' })
    }
    if (file !== 'src/config.ts' && mayReadEnvironment(syntax, parent)) {
      found.push({ rule: 'only-settings-read-the-environment', file, detail: 'reads process.env or passes process on' })
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

/** Every use of `process` other than a member like `process.exit`, because code that has `process` also has `process.env`. */
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

function listSourceFiles(root: string): string[] {
  if (!existsSync(join(root, 'src'))) return []
  return readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .sort()
}

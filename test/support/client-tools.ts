import type { ChildProcess } from 'node:child_process'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { skipFor } from './skip.js'

/** This script is not compiled: its path is relative to `dist`. */
const SCRIPT = fileURLToPath(new URL('../../../scripts/engines/client-tools.sh', import.meta.url))

export interface ProgramEnd {
  readonly exitCode: unknown
  readonly stdout: string
  readonly stderr: string
}

/** The packages of test/clients. A program in `folder` can import the npm packages, and commands find the tools of both languages. */
export interface ClientTools {
  /** Empty and temporary. */
  readonly folder: string
  run(program: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<ProgramEnd>
  runScript(script: string, env?: NodeJS.ProcessEnv): Promise<ProgramEnd>
  endPrograms(): void
  remove(): void
}

/** Skips the suite if scripts/set-up-engines.sh has not installed the packages. */
export function openClientTools(context: Mocha.Context): ClientTools {
  if (spawnSync('bash', [SCRIPT, 'is-installed']).status !== 0)
    skipFor(context, 'The client tools are not installed', 'run scripts/engines/client-tools.sh install')
  const installed = spawnSync('bash', [SCRIPT, 'print-folder'], { encoding: 'utf8' }).stdout.trim()
  const folder = mkdtempSync(join(tmpdir(), 'petstore-clients-'))
  symlinkSync(join(installed, 'node_modules'), join(folder, 'node_modules'))
  const { PATH = '', HOME } = process.env
  const path = [join(installed, 'venv/bin'), join(installed, 'node_modules/.bin'), PATH].join(delimiter)
  const running = new Set<ChildProcess>()
  const run: ClientTools['run'] = async (program, args, env = {}) =>
    new Promise((resolve) => {
      const child = execFile(program, args, { cwd: folder, env: { PATH: path, HOME, ...env } }, (error, stdout, stderr) => {
        running.delete(child)
        resolve({ exitCode: error?.code ?? 0, stdout, stderr })
      })
      running.add(child)
    })
  return {
    folder,
    run,
    // If its input is a socket, bash reads ~/.bashrc, which may change PATH.
    runScript: async (script, env) => run('bash', ['--norc', '-ec', script], env),
    endPrograms() {
      for (const child of running) child.kill('SIGKILL')
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** Returns the code blocks in a section of a page, up to the next heading. `language` is a pattern. Tests run in the root of the repository. */
export function readBlocks(page: string, heading: string, language: string): readonly string[] {
  const [, section = ''] = new RegExp(`^#+ ${heading}\n([^]*?)(?=^##+ |(?![^]))`, 'm').exec(readFileSync(page, 'utf8')) ?? []
  const blocks = [...section.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, block = '']) => block)
  if (blocks.length === 0) throw new Error(`${page} has no ${language} block below the heading ${heading}`)
  return blocks
}

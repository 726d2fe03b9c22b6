import type { ChangedApiKey } from '../../core/announce-change.js'
import type { StoredApiKey } from '../../core/api-key.js'
import type { ApiKeyAdmin, AuditedChange, KeysCommandDeps } from './api-key-admin.js'
import { formatKey, toKeyReport } from './key-report.js'

export interface OutputOptions {
  readonly json?: true
}

const EFFECTS = {
  'at once': 'The change takes effect on the next request.',
  'within 10 s': 'Redis is unavailable, so the change takes effect within 10 seconds.',
} as const

/** What the commands print, for people or as JSON. */
export class KeysOutput {
  constructor(private readonly deps: Pick<KeysCommandDeps, 'print' | 'audit'>) {}

  print(text: string): void {
    this.deps.print(text)
  }

  printJson(value: unknown): void {
    this.print(`${JSON.stringify(value, null, 2)}\n`)
  }

  printKey(key: StoredApiKey, admin: ApiKeyAdmin, { json }: OutputOptions): void {
    const report = toKeyReport(key, admin.plans, admin.nowMs())
    if (json) this.printJson(report)
    else this.print(formatKey(report))
  }

  /** Prints a changed key, with its secret if it is new. `takesEffect` is absent if the key is new. */
  printChange({ key, takesEffect, secret }: ChangeOutput, admin: ApiKeyAdmin, { json }: OutputOptions): void {
    const report = toKeyReport(key, admin.plans, admin.nowMs())
    if (json) {
      this.printJson({ ...(secret === undefined ? {} : { key: secret }), ...report, ...(takesEffect ? { takesEffect } : {}) })
      return
    }
    const introduction = secret === undefined ? '' : `The API key's secret. It is shown only once and is not stored:\n\n  ${secret}\n\n`
    this.print(`${introduction}${formatKey(report)}${takesEffect ? `\n${EFFECTS[takesEffect]}\n` : ''}`)
  }

  audit(msg: AuditedChange['msg'], { keyId, owner, plan, limits }: StoredApiKey, by: string): void {
    this.deps.audit({ msg, by, keyId, owner, plan, limits })
  }
}

interface ChangeOutput extends Pick<ChangedApiKey, 'key'>, Partial<Pick<ChangedApiKey, 'takesEffect'>> {
  readonly secret?: string
}

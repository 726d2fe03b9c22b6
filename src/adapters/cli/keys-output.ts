import type { ChangedApiKey } from '../../core/announce-change.js'
import type { StoredApiKey } from '../../core/api-key.js'
import type { ApiKeyChange } from '../../core/api-key-change.js'
import type { ApiKeyAdmin, AuditedChange, KeysCommandDeps } from './api-key-admin.js'
import { formatKey, toIso, toKeyReport } from './key-report.js'

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

  /** Audits and prints a change. If the command changed nothing, only prints the key and `unchanged`, which says why. */
  reportChange(msg: AuditedChange['msg'], changed: ChangedApiKey, unchanged: string, admin: ApiKeyAdmin, options: OutputOptions): void {
    if (changed.change) this.audit(msg, changed.key, changed.change.by)
    this.printChange(changed.change ? changed : { ...changed, unchanged }, admin, options)
  }

  /** Prints a key, with its secret if it is new. `takesEffect` is absent if the key is new. `unchanged` says why the key did not change. */
  printChange({ key, takesEffect, secret, unchanged }: ChangeOutput, admin: ApiKeyAdmin, { json }: OutputOptions): void {
    const report = toKeyReport(key, admin.plans, admin.nowMs())
    if (json) {
      this.printJson({ ...(secret === undefined ? {} : { key: secret }), ...report, ...(takesEffect ? { takesEffect } : {}) })
      return
    }
    const introduction = secret === undefined ? '' : `The API key's secret. It is shown only once and is not stored:\n\n  ${secret}\n\n`
    const effect = unchanged !== undefined && takesEffect === 'at once' ? undefined : takesEffect
    const remarks = [unchanged, effect && EFFECTS[effect]].filter((remark) => remark !== undefined)
    this.print(`${introduction}${formatKey(report)}${remarks.length > 0 ? `\n${remarks.join('\n')}\n` : ''}`)
  }

  /** `rotation`: the change of a rotated key, whose hints and grace period the audit line contains. */
  audit(msg: AuditedChange['msg'], { keyId, owner, plan, limits }: StoredApiKey, by: string, rotation?: ApiKeyChange): void {
    this.deps.audit({ msg, by, keyId, owner, plan, limits, ...(rotation ? toAuditedRotation(rotation) : {}) })
  }
}

interface ChangeOutput extends Pick<ChangedApiKey, 'key'>, Partial<Pick<ChangedApiKey, 'takesEffect'>> {
  readonly secret?: string
  readonly unchanged?: string
}

function toAuditedRotation({ before, after: { hint, oldSecret } }: ApiKeyChange) {
  return { hint, oldHint: before.hint, ...(oldSecret ? { oldSecretExpiresAt: toIso(oldSecret.expiresAtMs) } : {}) }
}

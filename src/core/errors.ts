/** An error that is no defect. It has no stack trace, because collecting one takes longer than the rest of a rejected request. */
export class ExpectedError extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * An error that callers can expect, such as a violated business rule or an outage. `code` is stable and machine-readable; adapters map it to
 * their own responses.
 */
export abstract class DomainError extends ExpectedError {
  abstract readonly code: string
}

export class PetNotFound extends DomainError {
  readonly code = 'pet_not_found'
}

/** The idempotency key was used before, for a different pet. */
export class IdempotencyKeyReused extends DomainError {
  readonly code = 'idempotency_key_reused'
}

/** A store is unreachable, unable to serve, or did not respond in time. It is unknown whether a write took place. `cause` holds the driver's error. */
export class StoreUnavailable extends DomainError {
  readonly code = 'service_unavailable'

  /** One sentence for operators: the message and the cause. Contains no secret. */
  get reason(): string {
    return this.cause instanceof Error ? `${this.message}: ${this.cause.message}` : this.message
  }
}

/** The plan has no limits, so the key must carry its own. */
export class LimitsRequired extends DomainError {
  readonly code = 'limits_required'
}

export class ApiKeyNotFound extends DomainError {
  readonly code = 'api_key_not_found'

  constructor(keyId: string) {
    super(`No API key has the ID ${keyId}`)
  }
}

export class ApiKeyRevoked extends DomainError {
  readonly code = 'api_key_revoked'
}

export class ApiKeyExpired extends DomainError {
  readonly code = 'api_key_expired'
}

/** The key was rotated before, and its old secret is still valid, or it was rotated at the same time. */
export class RotationInProgress extends DomainError {
  readonly code = 'rotation_in_progress'
}

/** Sample orders were requested, but there are no pets to order. */
export class NoPetsToOrder extends DomainError {
  readonly code = 'no_pets_to_order'
}

/** A problem that an operator has to solve. The message says what to change and contains no secret. */
export class OperatorError extends Error {}

/** An error in a setting that is detected only when the setting is used. */
export class SettingError extends OperatorError {}

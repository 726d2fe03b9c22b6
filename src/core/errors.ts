/** A rule of the store that a request ran into. `code` is stable and machine-readable; adapters map it to their own answers. */
export abstract class DomainError extends Error {
  abstract readonly code: string
}

export class PetNotFound extends DomainError {
  readonly code = 'pet_not_found'
}

/** The idempotency key was used before, for another pet. */
export class IdempotencyKeyReused extends DomainError {
  readonly code = 'idempotency_key_reused'
}

/** A store could not be reached, did not answer in time, or cannot serve now. Whether a write took place is unknown. `cause` holds what the driver said. */
export class StoreUnavailable extends DomainError {
  readonly code = 'service_unavailable'
}

/** A key on a plan without limits must carry its own. */
export class LimitsRequired extends DomainError {
  readonly code = 'limits_required'
}

/** No API key has this key id. */
export class ApiKeyNotFound extends DomainError {
  readonly code = 'api_key_not_found'
}

/** Sample orders were asked for where there is no pet. */
export class NoPetsToOrder extends DomainError {
  readonly code = 'no_pets_to_order'
}

/** Something that an operator has to change. The message is for them: it says what, and holds no secret. */
export class OperatorError extends Error {}

/** A setting that can only be judged where it is used. */
export class SettingError extends OperatorError {}

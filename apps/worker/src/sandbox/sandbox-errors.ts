/**
 * Thrown for a request that the sandbox rejected (`outside_workspace`, `not_found`, …). The sandbox itself still works.
 */
export class SandboxRefusal extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = "SandboxRefusal";
    this.code = code;
  }
}

/** Thrown if the sandbox ended or violated the protocol. It accepts no more requests. */
export class SandboxGone extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SandboxGone";
  }
}

/** Thrown if a file exceeds the reader's limit. */
export class FileTooLarge extends Error {}

/**
 * The sandbox of an execution did not start. Another attempt may succeed, possibly on another worker. The message is
 * public.
 */
export class SandboxStartFailed extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "SandboxStartFailed";
  }
}

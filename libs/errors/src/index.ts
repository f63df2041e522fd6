export { CONNECT_CODES, ERROR_KINDS, isErrorKind, type ErrorKind, type ErrorKindName } from "./kinds.ts";
export { DomainError, invalidArgument, isDomainError, notFound, type DomainErrorInit } from "./domain-error.ts";
export {
  PROMPT_PREVIEW_CHARACTERS,
  requireConfigWithin,
  requireTextWithin,
  RUN_CONFIG_BYTES_MAX,
  RUN_TEXT_BYTES_MAX,
} from "./run-text.ts";
export { bestEffort, type WarnLog } from "./best-effort.ts";
export { containsCredential, withoutCredentials } from "./credential-forms.ts";
export { isLostConnection, serviceUnavailable } from "./lost-connection.ts";
export {
  asDomainError,
  ERROR_CATALOG,
  isDependencyAbsent,
  problemOf,
  type ProblemBody,
  type ProblemContext,
} from "./problem.ts";
export { isStorageFull } from "./storage-full.ts";

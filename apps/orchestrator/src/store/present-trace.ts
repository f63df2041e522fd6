import { currentScope, formatTraceparent } from "@millwright/telemetry";

/** The trace of the request under way, as columns keep it. */
export function presentTrace(): string | null {
  const scope = currentScope();
  return scope ? formatTraceparent(scope.trace) : null;
}

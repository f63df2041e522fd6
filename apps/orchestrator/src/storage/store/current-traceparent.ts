import { currentScope, formatTraceparent } from "@millwright/telemetry";

/** Returns the trace of the current request in the format in which columns store it. */
export function currentTraceparent(): string | null {
  const scope = currentScope();
  return scope ? formatTraceparent(scope.trace) : null;
}

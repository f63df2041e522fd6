import { canAs, requireVerbAs, type Caller, type Verb } from "@millwright/caller";
import type { Owner } from "../domain/run.ts";

/** Returns whether the caller, who can see the run, may do `verb` to it. */
export const hasRunVerb = (caller: Caller, { owner }: { readonly owner: Owner }, verb: Verb): boolean =>
  canAs(caller, owner, verb);

/**
 * Returns the run if the caller, who can see it, may do `verb` to it.
 *
 * Errors: not_authorized (permission_denied).
 */
export function requireRunVerb<R extends { readonly owner: Owner }>(caller: Caller, run: R, verb: Verb): R {
  requireVerbAs(caller, run.owner, verb, "run");
  return run;
}

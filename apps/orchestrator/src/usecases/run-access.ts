import { can, requireVerb, type Caller, type Verb } from "@millwright/caller";
import type { Owner } from "../domain/run.ts";

/** Whether the caller, who can see the run, may do `verb` to it. */
export const hasRunVerb = (caller: Caller, { owner }: { readonly owner: Owner }, verb: Verb): boolean => owner.type === "user" || can(caller, owner.uid, verb);

/**
 * Gives the run back if the caller, who can see it, may do `verb` to it. A personal run is its owner's alone, and nobody
 * else sees it.
 *
 * Errors: not_authorized (permission_denied).
 */
export function requireRunVerb<R extends { readonly owner: Owner }>(caller: Caller, run: R, verb: Verb): R {
  if (run.owner.type === "team") requireVerb(caller, run.owner.uid, verb, "run");
  return run;
}

import type { Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import type { RunUid } from "@millwright/ids";
import { canonicalUrl } from "../domain/canonical-url.ts";

export type FindRunByReferenceDeps = { readonly findByReference: (caller: Caller, url: string) => Promise<RunUid | undefined> };

/**
 * The run that first reported an external reference, among those the caller sees. URLs are compared in their canonical form.
 *
 * Errors: url_invalid · run_not_found. Source: fields-runs §6.5, decisions "run-by-external-reference".
 */
export async function findRunByReference(deps: FindRunByReferenceDeps, caller: Caller, text: string): Promise<RunUid> {
  const url = canonicalUrl(text);
  if (url === undefined) throw invalidArgument("url_invalid", "url must be an http or https URL of at most 2048 characters, without a credential.");
  const uid = await deps.findByReference(caller, url);
  if (!uid) throw notFound("run");
  return uid;
}

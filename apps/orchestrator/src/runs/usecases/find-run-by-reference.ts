import type { Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid, type RunUid } from "@millwright/ids";
import { canonicalUrl } from "../../catalog/domain/canonical-url.ts";

export type FindRunByReferenceDeps = {
  readonly findByReference: (caller: Caller, url: string) => Promise<RunUid | undefined>;
};

/**
 * Returns the run that first reported an external reference, of the runs that the caller may see. URLs are compared in
 * their canonical form.
 *
 * Errors: url_invalid · run_not_found.
 */
export async function findRunByReference(deps: FindRunByReferenceDeps, caller: Caller, text: string): Promise<RunUid> {
  const uid = await deps.findByReference(caller, readUrl(text));
  if (!uid) throw notFound("run");
  return uid;
}

export type FindConversationsByUrlDeps = {
  readonly conversationsByUrl: (teamUid: string, url: string) => Promise<readonly string[]>;
};

/**
 * Returns the conversations of a team whose runs reported a URL, or whose ticket has that URL, newest first.
 *
 * Errors: url_invalid.
 */
export const findConversationsByUrl = async (
  deps: FindConversationsByUrlDeps,
  teamUid: string,
  text: string,
): Promise<readonly string[]> => (isUuid(teamUid) ? deps.conversationsByUrl(teamUid, readUrl(text)) : []);

function readUrl(text: string): string {
  const url = canonicalUrl(text);
  if (url === undefined)
    throw invalidArgument(
      "url_invalid",
      "url must be an http or https URL of at most 2048 characters, without a credential.",
    );
  return url;
}

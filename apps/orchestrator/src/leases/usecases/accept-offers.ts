import type { Assignment, Input } from "../../runs/domain/assignment.ts";
import { attachmentKey, SNAPSHOT_TYPE } from "../../storage/domain/blob-keys.ts";
import type { Attachment, Message } from "../../runs/domain/message.ts";
import type { RunTokenClaims } from "../../runs/domain/run-token.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { claimOffers, type Claim, type ClaimOffersDeps, type Item } from "./claim-offers.ts";

export type AcceptOffersDeps = ClaimOffersDeps & {
  mintRunToken(claims: RunTokenClaims): Promise<string>;
  /** Returns a signed URL to read a stored file, such as a workspace or an attachment. */
  downloadUrl(key: string, contentType: string): Promise<string>;
};

export type Accepted = { readonly assignments: readonly Assignment[]; readonly lost: readonly LeaseRef[] };

/**
 * Accepts offers. Each run becomes CLAIMED, the messages that its agent has not received become the inputs of the
 * execution, and the worker receives the specification, the secrets and a run token. If the same session accepts the
 * same attempt again, it receives the same assignment. If the secrets or repositories of a run cannot be resolved, the
 * run fails with that reason and its offer is returned as lost.
 *
 * Errors: unavailable if an upstream service cannot be reached; the offers stay open.
 */
export async function acceptOffers(
  deps: AcceptOffersDeps,
  session: WorkerSession,
  offers: readonly LeaseRef[],
): Promise<Accepted> {
  const { items, claims } = await claimOffers(deps, session, offers);
  const assignments = await Promise.all(items.map((item) => assignmentOf(deps, item, claims.get(item.offer))));
  const accepted = new Set(items.filter((_item, n) => assignments[n]).map(({ offer }) => offer));
  return {
    assignments: assignments.filter((assignment) => assignment !== undefined),
    lost: offers.filter((offer) => !accepted.has(offer)),
  };
}

async function assignmentOf(
  deps: AcceptOffersDeps,
  { offer: { executionId, attempt }, job, prepared }: Item,
  claim: Claim | undefined,
): Promise<Assignment | undefined> {
  if (!claim || "failure" in prepared) return undefined;
  const { snapshotKey, inputs, earlierAttachments, ...rest } = claim;
  const [runToken, snapshotUrl, linked, earlier] = await Promise.all([
    deps.mintRunToken({ run: job.run, executionId, attempt, expiresAt: claim.leaseExpiresAt }),
    snapshotKey ? deps.downloadUrl(snapshotKey, SNAPSHOT_TYPE) : "",
    Promise.all(inputs.map((message) => withLinks(deps, message))),
    linksTo(deps, earlierAttachments),
  ]);
  return {
    executionId,
    attempt,
    job,
    details: prepared.details,
    runToken,
    snapshotUrl,
    snapshotKey: snapshotKey ?? "",
    inputs: linked,
    earlierAttachments: earlier,
    ...rest,
  };
}

const withLinks = async (deps: AcceptOffersDeps, message: Message): Promise<Input> => ({
  ...message,
  attachments: await linksTo(deps, message.attachments),
});

const linksTo = (deps: AcceptOffersDeps, files: readonly Attachment[]): Promise<Input["attachments"]> =>
  Promise.all(
    files.map(async (file) => ({ ...file, downloadUrl: await deps.downloadUrl(attachmentKey(file), file.mimeType) })),
  );

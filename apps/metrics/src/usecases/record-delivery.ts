import { payloadOf, type CodeHostDelivery } from "@millwright/code-host-events";
import { GITHUB_EVENTS, githubFacts } from "../domain/github-facts.ts";
import { GITLAB_EVENTS, gitlabFacts } from "../domain/gitlab-facts.ts";
import type { PullRequestFacts } from "../domain/pull-request-fact.ts";

/** Work that stores the facts of one delivery; its key is the delivery's uid. */
export const RECORD_DELIVERY = "record_code_host_delivery";

/** An accepted delivery of a code host. */
export type AcceptedDelivery = CodeHostDelivery & { readonly teamUid: string; readonly receivedAt: Date };

export type RecordDeliveryDeps<Tx> = {
  readonly deliveries: {
    /** Undefined: there is none, or it is no longer stored. */
    find(uid: string): Promise<AcceptedDelivery | undefined>;
  };
  readonly pullRequests: {
    /** Stores the facts and projects the pull request in one transaction that `finish` takes part in. */
    record(teamUid: string, facts: PullRequestFacts, finish: (tx: Tx) => Promise<void>): Promise<void>;
  };
};

/** Returns whether deliveries of this event, as their header names it, may report facts of pull requests. */
export const mayReportPullRequest = (event: unknown): boolean =>
  typeof event === "string" && (GITHUB_EVENTS.includes(event) || GITLAB_EVENTS.includes(event));

/** Stores what a delivery reports of a pull request, also of one that no run has produced. Other deliveries change nothing. */
export async function recordDelivery<Tx>(
  deps: RecordDeliveryDeps<Tx>,
  uid: string,
  finish: (tx: Tx) => Promise<void>,
): Promise<void> {
  const delivery = await deps.deliveries.find(uid);
  const facts = delivery && factsOf(delivery);
  if (facts) await deps.pullRequests.record(delivery.teamUid, facts, finish);
}

function factsOf(delivery: AcceptedDelivery): PullRequestFacts | undefined {
  const payload = payloadOf(delivery);
  if (delivery.provider === "github")
    return githubFacts(delivery.headers["x-github-event"] ?? "", payload, delivery.botLogin);
  return delivery.provider === "gitlab" ? gitlabFacts(payload, delivery.botLogin, delivery.receivedAt) : undefined;
}

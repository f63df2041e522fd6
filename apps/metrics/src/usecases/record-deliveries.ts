import { payloadOf, type CodeHostDelivery } from "@millwright/code-host-events";
import type { Sql } from "@millwright/database";
import { GITHUB_EVENTS, githubFacts } from "../domain/github-facts.ts";
import { GITLAB_EVENTS, gitlabFacts } from "../domain/gitlab-facts.ts";
import type { PullRequestFacts, ReportedFacts } from "../domain/pull-request-fact.ts";
import type { PullRequestFactStore } from "../store/pull-request-fact-store.ts";

/** Work that stores the facts of one delivery; its key is the delivery's uid. */
export const RECORD_DELIVERY = "record_code_host_delivery";

/** An accepted delivery of a code host. */
export type AcceptedDelivery = CodeHostDelivery & { readonly teamUid: string; readonly receivedAt: Date };

export type RecordDeliveriesDeps = {
  readonly deliveries: {
    /** Reads deliveries in pages of limited size. Those that are no longer stored are left out. */
    read(uids: readonly string[]): AsyncIterable<readonly AcceptedDelivery[]>;
  };
  readonly pullRequests: Pick<PullRequestFactStore, "record">;
};

/** Returns whether deliveries of this event, as their header names it, may report facts of pull requests. */
export const mayReportPullRequest = (event: unknown): boolean =>
  typeof event === "string" && (GITHUB_EVENTS.includes(event) || GITLAB_EVENTS.includes(event));

/**
 * Stores what deliveries report of pull requests, also of those that no run has produced, all or nothing. Other
 * deliveries change nothing.
 */
export async function recordDeliveries(
  deps: RecordDeliveriesDeps,
  uids: readonly string[],
  finish: (tx: Sql) => Promise<void>,
): Promise<void> {
  const reported: ReportedFacts[] = [];
  for await (const deliveries of deps.deliveries.read(uids)) {
    for (const delivery of deliveries) {
      const facts = factsOf(delivery);
      if (facts) reported.push({ teamUid: delivery.teamUid, facts });
    }
  }
  if (reported.length > 0) await deps.pullRequests.record(reported, finish);
}

function factsOf(delivery: AcceptedDelivery): PullRequestFacts | undefined {
  const payload = payloadOf(delivery);
  if (delivery.provider === "github")
    return githubFacts(delivery.headers["x-github-event"] ?? "", payload, delivery.botLogin);
  return delivery.provider === "gitlab" ? gitlabFacts(payload, delivery.botLogin, delivery.receivedAt) : undefined;
}

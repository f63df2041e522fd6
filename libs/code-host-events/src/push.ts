import type { CodeHostDelivery } from "./event.ts";
import { branchOf } from "./github.ts";
import { at, textAt } from "./json.ts";
import { payloadOf } from "./payload.ts";

/** A branch that has moved at a code host. */
export type BranchPush = {
  /** `owner/repo`, or `group/…/project`. */
  readonly repository: string;
  readonly branch: string;
  /** The commit it is at now; absent: the branch was deleted. */
  readonly headSha: string | undefined;
  /** Where it was; absent: it did not exist. */
  readonly beforeSha: string | undefined;
  /** Known from GitHub only. */
  readonly isForced: boolean;
};

const NONE = /^0+$/;
const SHA = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** The branch that a delivery says was pushed; undefined when it says no such thing (a tag, another event). */
export function branchPushOf(delivery: Pick<CodeHostDelivery, "provider" | "headers" | "body">): BranchPush | undefined {
  const payload = payloadOf(delivery);
  const isPush = delivery.provider === "github" ? delivery.headers["x-github-event"] === "push" : delivery.provider === "gitlab" && textAt(payload, "object_kind") === "push";
  const repository = textAt(payload, ...(delivery.provider === "github" ? ["repository", "full_name"] : ["project", "path_with_namespace"]));
  const [branch] = branchOf(textAt(payload, "ref"));
  const [before, after] = [textAt(payload, "before"), textAt(payload, "after")];
  if (!isPush || repository === "" || branch === undefined || !SHA.test(before) || !SHA.test(after)) return undefined;
  return { repository, branch, headSha: NONE.test(after) ? undefined : after, beforeSha: NONE.test(before) ? undefined : before, isForced: at(payload, "forced") === true };
}

import type { CodeHostDelivery } from "./event.ts";
import { branchOf } from "./github.ts";
import { at, textAt } from "./json.ts";
import { payloadOf } from "./payload.ts";
import { repositoryAddress } from "./repository-address.ts";

/** A branch that was pushed at a code host. */
export type BranchPush = {
  /** `owner/repo`, or `group/…/project`. */
  readonly repository: string;
  /** Its addresses, as `repositoryAddress` normalises them; one of them is the address that was cloned. */
  readonly addresses: readonly string[];
  readonly branch: string;
  /** The new head commit; absent: the branch was deleted. */
  readonly headSha: string | undefined;
  /** The previous head commit; absent: the branch was created. */
  readonly beforeSha: string | undefined;
  /** Known for GitHub only. */
  readonly isForced: boolean;
};

const URLS = ["clone_url", "html_url", "ssh_url", "git_url", "git_http_url", "git_ssh_url", "web_url"];

const NONE = /^0+$/;
const SHA = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Returns the branch of a push delivery; undefined for a tag or another event. */
export function branchPushOf(
  delivery: Pick<CodeHostDelivery, "provider" | "headers" | "body">,
): BranchPush | undefined {
  const payload = payloadOf(delivery);
  const isPush =
    delivery.provider === "github"
      ? delivery.headers["x-github-event"] === "push"
      : delivery.provider === "gitlab" && textAt(payload, "object_kind") === "push";
  const of = at(payload, delivery.provider === "github" ? "repository" : "project");
  const repository = textAt(of, delivery.provider === "github" ? "full_name" : "path_with_namespace");
  const addresses = new Set(URLS.flatMap((name) => repositoryAddress(textAt(of, name)) ?? []));
  const [branch] = branchOf(textAt(payload, "ref"));
  const [before, after] = [textAt(payload, "before"), textAt(payload, "after")];
  if (!isPush || repository === "" || branch === undefined || !SHA.test(before) || !SHA.test(after)) return undefined;
  return {
    repository,
    addresses: [...addresses],
    branch,
    headSha: NONE.test(after) ? undefined : after,
    beforeSha: NONE.test(before) ? undefined : before,
    isForced: at(payload, "forced") === true,
  };
}

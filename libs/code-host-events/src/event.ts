/** A stored delivery of a code host, as the webhook ingress answers it: nothing of it is trusted but that its sender knew the secret. */
export type CodeHostDelivery = {
  readonly provider: string;
  /** Names in lower case; those that the ingress keeps. */
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes as received. */
  readonly body: Uint8Array;
  /** The account under which the platform acts there; "" = not known. */
  readonly botLogin: string;
};

export type CodeHostProvider = "github" | "gitlab";

/** What a filter can select by (spec factory-files §6.2). */
export type FilterKey =
  | "repos"
  | "branches"
  | "base_branches"
  | "pr_numbers"
  | "paths"
  | "labels"
  | "authors"
  | "assignees"
  | "mentioned"
  | "reviewers"
  | "reviewer_teams"
  | "review_states"
  | "workflows"
  | "conclusions"
  | "actions";

export type Attributes = Readonly<Partial<Record<FilterKey, readonly string[]>>>;

/** An issue or a pull request (merge request). */
export type Item = {
  /** `owner/repo#7`; of GitLab's merge requests `group/project!7`. */
  readonly id: string;
  readonly url: string;
};

/** None without a URL, nor with NUL in either text: no code host has such an item, and neither a request nor a column can hold it. */
export const itemsOf = (id: string, url: string): readonly Item[] =>
  url === "" || id.includes("\0") || url.includes("\0") ? [] : [{ id, url }];

/** Something that happened at a code host, in the words of triggers (spec factory-files §6.1). One delivery can tell of several. */
export type CodeHostEvent = {
  readonly provider: CodeHostProvider;
  /** Such as `pull_request_opened`. */
  readonly event: string;
  /** `owner/repo`, or `group/…/project`. */
  readonly repository: string;
  /**
   * Values by key. Of a label or an assignee that was just added this is the added one alone, so that `in` asks what
   * happened; the others are in `carried`, at which `not_in` looks too.
   */
  readonly attributes: Attributes;
  readonly carried: Attributes;
  /** Keys that apply, but that only the code host can tell: ask it about `pullRequests`, then use `withAttributes`. */
  readonly untold: readonly FilterKey[];
  /** Numbers of the pull requests (merge requests) that it is about. */
  readonly pullRequests: readonly number[];
  /** Who did it; absent for builds, which nobody does. */
  readonly actor: { readonly login: string; readonly isPlatform: boolean } | undefined;
  /** The issue or pull request on which it happened, of builds those that they are for: to find the work that is bound to them. None of pushes, and of comments on something else. */
  readonly items: readonly Item[];
  /** What it is about, for people. */
  readonly subject: {
    readonly kind: "issue" | "pull_request" | "push" | "build" | "comment";
    readonly url: string;
    readonly title: string;
  };
};

/** The event with what the code host said about its pull requests. */
export function withAttributes(event: CodeHostEvent, told: Attributes): CodeHostEvent {
  const keys = event.untold.filter((key) => told[key] !== undefined);
  return {
    ...event,
    attributes: { ...event.attributes, ...Object.fromEntries(keys.map((key) => [key, told[key]!])) },
    untold: event.untold.filter((key) => !keys.includes(key)),
  };
}

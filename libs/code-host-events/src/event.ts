/**
 * A stored delivery of a code host, as the webhook ingress returns it. Nothing in it is trusted except that its sender
 * knew the secret.
 */
export type CodeHostDelivery = {
  readonly provider: string;
  /** Lower-case names; those that the ingress stores. */
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes as received. */
  readonly body: Uint8Array;
  /** The account under which the platform acts there; "" = unknown. */
  readonly botLogin: string;
};

export type CodeHostProvider = "github" | "gitlab";

/** Attributes by which a filter can select. */
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

/**
 * Returns undefined without a URL, or if a text contains NUL: no code host has such an item, and neither a request nor
 * a column can store it.
 */
export const itemsOf = (id: string, url: string): readonly Item[] =>
  url === "" || id.includes("\0") || url.includes("\0") ? [] : [{ id, url }];

/** An event at a code host, in the terms of triggers. One delivery can contain several. */
export type CodeHostEvent = {
  readonly provider: CodeHostProvider;
  /** Such as `pull_request_opened`. */
  readonly event: string;
  /** `owner/repo`, or `group/…/project`. */
  readonly repository: string;
  /**
   * Values by key. For an added label or assignee, only the added one, so that `in` matches the change; the complete
   * set is in `carried`, which `not_in` checks too.
   */
  readonly attributes: Attributes;
  readonly carried: Attributes;
  /**
   * Keys that apply but whose values only the code host knows: request them for `pullRequests`, then use
   * `withAttributes`.
   */
  readonly unresolved: readonly FilterKey[];
  /** Numbers of the affected pull requests (merge requests). */
  readonly pullRequests: readonly number[];
  /** Who caused it; absent for builds, which have no author. */
  readonly actor: { readonly login: string; readonly isPlatform: boolean } | undefined;
  /**
   * The issue or pull request where it happened; for builds, the pull requests they run for. Used to find the work
   * bound to them. Absent for pushes and for comments on other objects.
   */
  readonly items: readonly Item[];
  /** Title of the subject, for people. */
  readonly subject: {
    readonly kind: "issue" | "pull_request" | "push" | "build" | "comment";
    readonly url: string;
    readonly title: string;
  };
};

/** Returns the event with the code host's data about its pull requests. */
export function withAttributes(event: CodeHostEvent, known: Attributes): CodeHostEvent {
  const keys = event.unresolved.filter((key) => known[key] !== undefined);
  return {
    ...event,
    attributes: { ...event.attributes, ...Object.fromEntries(keys.map((key) => [key, known[key]!])) },
    unresolved: event.unresolved.filter((key) => !keys.includes(key)),
  };
}

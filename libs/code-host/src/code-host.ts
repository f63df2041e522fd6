/** A repository as the platform writes it: `owner/repo`. */
export type Repository = { readonly owner: string; readonly repo: string };

/** What is asked of any place that keeps repositories. Errors everywhere: repository_not_found, repository_invalid. */
export interface CodeHost {
  /** What `git clone` takes; never contains a credential. */
  cloneUrl(repository: Repository): string;
  defaultBranch(repository: Repository): Promise<string>;
  /** The newest commit of a branch; undefined when there is no such branch. Errors: branch_invalid. */
  branchSha(repository: Repository, branch: string): Promise<string | undefined>;
  /** The commit of a branch, a tag or a full commit id, in this order; undefined when there is none. Errors: branch_invalid. */
  commitOf(repository: Repository, ref: string): Promise<string | undefined>;
  /** Chosen files at the head of the default branch, by path; none for an empty repository. */
  readFiles(repository: Repository, choice: FileChoice): Promise<readonly RepositoryFile[]>;
}

/** Which files are read: what is beyond the bounds is left out, never cut. */
export type FileChoice = {
  readonly wants: (path: string) => boolean;
  readonly filesMax: number;
  readonly fileBytesMax: number;
};
export type RepositoryFile = { readonly path: string; readonly content: Uint8Array };

/** A pull request as its host tells it. */
export type PullRequest = {
  readonly number: number;
  /** Its page. */
  readonly url: string;
  readonly state: "open" | "closed" | "merged";
  readonly title: string;
  readonly head: string;
  readonly headSha: string;
  readonly base: string;
};

/** What people and programs select pull requests by. */
export type PullRequestFacts = {
  readonly labels: readonly string[];
  readonly author: string;
  readonly base: string;
  /** Of the changed files, at most `CHANGED_FILES_MAX`; of one that was renamed both its paths. */
  readonly paths: readonly string[];
};

/** As many as GitHub tells of one pull request. */
export const CHANGED_FILES_MAX = 3_000;

export type NewPullRequest = {
  readonly repository: Repository;
  readonly head: string;
  /** What the head must be at: an agent's branch that has moved on is not what was asked for. */
  readonly headSha: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
};

/** `adopted`: it was open already, by an earlier attempt or by somebody else. */
export type OpenedPullRequest = PullRequest & { readonly adopted: boolean };

/** A code host that keeps pull requests itself. */
export interface PullRequestHost extends CodeHost {
  /**
   * Opens a pull request, or adopts the open one of the same head and base; safe to repeat.
   *
   * Errors: head_branch_not_found · head_moved (conflict) · pull_request_refused (unsupported), such as no difference to the base.
   */
  ensurePullRequest(wanted: NewPullRequest): Promise<OpenedPullRequest>;
  getPullRequest(repository: Repository, number: number): Promise<PullRequest | undefined>;
  /** Unified text of what it changes, at most `CHANGED_FILES_MAX` files; the host leaves out large ones. Undefined when there is none. */
  diffPullRequest(repository: Repository, number: number): Promise<string | undefined>;
  /** As it is now; undefined when there is none. */
  describePullRequest(repository: Repository, number: number): Promise<PullRequestFacts | undefined>;
}

export type DiffFile = {
  readonly path: string;
  /** Set when the file was renamed. */
  readonly oldPath?: string;
  /** Lines; 0 for binary files. */
  readonly additions: number;
  readonly deletions: number;
  readonly isBinary: boolean;
};

/** What merging `head` into `base` would bring: from their merge base to the head. */
export type Diff = {
  readonly baseSha: string;
  readonly headSha: string;
  /** Undefined for unrelated histories, which are compared with the base itself. */
  readonly mergeBaseSha: string | undefined;
  readonly files: readonly DiffFile[];
  /** Unified text, three lines of context. Not valid UTF-8 is replaced. */
  readonly text: string;
  /** The text (never the list of files) was cut at the size limit. */
  readonly isTruncated: boolean;
};

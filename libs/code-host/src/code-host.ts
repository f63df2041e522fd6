/** A repository in the platform's notation, `owner/repo`. */
export type Repository = { readonly owner: string; readonly repo: string };

/** Any source of repositories. Every method can throw repository_not_found and repository_invalid. */
export interface CodeHost {
  /** Returns a URL for `git clone`; it never contains a credential. */
  cloneUrl(repository: Repository): string;
  defaultBranch(repository: Repository): Promise<string>;
  /** Returns the newest commit of a branch; undefined if the branch does not exist. Errors: branch_invalid. */
  branchSha(repository: Repository, branch: string): Promise<string | undefined>;
  /**
   * Returns the commit of a branch, a tag or a full commit id, in this order; undefined if none exists. Errors:
   * branch_invalid.
   */
  commitOf(repository: Repository, ref: string): Promise<string | undefined>;
  /** Returns the chosen files at the head of the default branch, by path; none for an empty repository. */
  readFiles(repository: Repository, choice: FileChoice): Promise<readonly RepositoryFile[]>;
}

/** Which files are read; files beyond the limits are omitted, never truncated. */
export type FileChoice = {
  readonly wants: (path: string) => boolean;
  readonly filesMax: number;
  readonly fileBytesMax: number;
};
export type RepositoryFile = { readonly path: string; readonly content: Uint8Array };

/** A pull request as its host reports it. */
export type PullRequest = {
  readonly number: number;
  /** URL of its page. */
  readonly url: string;
  readonly state: "open" | "closed" | "merged";
  readonly title: string;
  readonly head: string;
  readonly headSha: string;
  readonly base: string;
};

/** The attributes by which people and programs select pull requests. */
export type PullRequestFacts = {
  readonly labels: readonly string[];
  readonly author: string;
  readonly base: string;
  /** Paths of the changed files, at most `CHANGED_FILES_MAX`; both paths of a renamed file. */
  readonly paths: readonly string[];
};

/** GitHub's limit of files per pull request. */
export const CHANGED_FILES_MAX = 3_000;

export type NewPullRequest = {
  readonly repository: Repository;
  readonly head: string;
  /** The expected head commit: if an agent's branch has moved, the request fails. */
  readonly headSha: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
};

/** `adopted`: an earlier attempt or another user had already opened it. */
export type OpenedPullRequest = PullRequest & { readonly adopted: boolean };

/** A code host that stores pull requests itself. */
export interface PullRequestHost extends CodeHost {
  /**
   * Opens a pull request, or adopts the open one with the same head and base; safe to retry.
   *
   * Errors: head_branch_not_found · head_moved (conflict) · pull_request_refused (unsupported), such as no difference
   * to the base.
   */
  ensurePullRequest(wanted: NewPullRequest): Promise<OpenedPullRequest>;
  getPullRequest(repository: Repository, number: number): Promise<PullRequest | undefined>;
  /**
   * Returns its unified diff, at most `CHANGED_FILES_MAX` files; the host omits large files. Undefined if it does not
   * exist.
   */
  diffPullRequest(repository: Repository, number: number): Promise<string | undefined>;
  /** Returns its current state; undefined if it does not exist. */
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

/** Returns the diff of merging `head` into `base`: from their merge base to the head. */
export type Diff = {
  readonly baseSha: string;
  readonly headSha: string;
  /** Undefined for unrelated histories, which are compared with the base itself. */
  readonly mergeBaseSha: string | undefined;
  readonly files: readonly DiffFile[];
  /** Unified diff with three lines of context. Invalid UTF-8 is replaced. */
  readonly text: string;
  /** The diff text (never the list of files) was truncated at the size limit. */
  readonly isTruncated: boolean;
};

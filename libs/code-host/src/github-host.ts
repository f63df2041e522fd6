import { notFound } from "@millwright/errors";
import {
  CHANGED_FILES_MAX,
  type FileChoice,
  type NewPullRequest,
  type OpenedPullRequest,
  type PullRequest,
  type PullRequestFacts,
  type PullRequestHost,
  type Repository,
  type RepositoryFile,
} from "./code-host.ts";
import {
  allPages,
  fileDiff,
  forgeApi,
  headMoved,
  member,
  pullRequestRefused,
  repositoryNotFound,
  text,
  textsAmong,
  type ForgeApi,
} from "./forge-api.ts";
import { checkBranch, checkRepository, isSha } from "./names.ts";

export type GithubOptions = {
  /** API base, such as "https://api.github.com" or "https://github.example.com/api/v3". */
  readonly baseUrl: string;
  /** "" for anonymous read access. */
  readonly token: string;
  /** Base URL of clones; by default derived from the API base as on GitHub. */
  readonly cloneBaseUrl?: string;
  readonly fetch?: typeof fetch;
};

/** Headers of every request to GitHub. */
export const GITHUB_HEADERS = { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" };

/** Returns a code host that uses GitHub's REST API. Errors of all calls: those of `forgeApi`. */
export function githubHost(options: GithubOptions): PullRequestHost {
  const api = forgeApi({
    baseUrl: options.baseUrl.replace(/\/+$/, ""),
    token: options.token,
    headers: GITHUB_HEADERS,
    fetch: options.fetch ?? fetch,
  });
  const cloneBase = (options.cloneBaseUrl ?? webOrigin(options.baseUrl)).replace(/\/+$/, "");
  return {
    cloneUrl: (repository) => {
      const { owner, repo } = checkRepository(repository);
      return `${cloneBase}/${owner}/${repo}.git`;
    },
    defaultBranch: (repository) => defaultBranch(api, repository),
    branchSha: (repository, branch) => branchSha(api, repository, branch),
    commitOf: (repository, ref) => commitOf(api, repository, ref),
    readFiles: (repository, choice) => readFiles(api, repository, choice),
    ensurePullRequest: (wanted) => ensurePullRequest(api, wanted),
    getPullRequest: (repository, number) => getPullRequest(api, repository, number),
    diffPullRequest: (repository, number) => diffPullRequest(api, repository, number),
    describePullRequest: (repository, number) => describePullRequest(api, repository, number),
  };
}

function webOrigin(apiBase: string): string {
  const url = new URL(apiBase);
  return url.hostname === "api.github.com" ? "https://github.com" : url.origin;
}

const repoPath = (repository: Repository): string => {
  const { owner, repo } = checkRepository(repository);
  return `/repos/${owner}/${repo}`;
};

async function defaultBranch(api: ForgeApi, repository: Repository): Promise<string> {
  const { status, body } = await api("GET", repoPath(repository));
  if (status === 404) throw repositoryNotFound();
  return text(body, "default_branch");
}

async function branchSha(api: ForgeApi, repository: Repository, branch: string): Promise<string | undefined> {
  const ref = checkBranch(branch).split("/").map(encodeURIComponent).join("/");
  const { status, body } = await api("GET", `${repoPath(repository)}/git/ref/heads/${ref}`);
  return status === 200 ? text(member(body, "object"), "sha") : undefined;
}

async function commitOf(api: ForgeApi, repository: Repository, ref: string): Promise<string | undefined> {
  const name = checkBranch(ref);
  for (const path of [`heads/${name}`, `tags/${name}`, ...(isSha(name) ? [name] : [])]) {
    const { status, body } = await api(
      "GET",
      `${repoPath(repository)}/commits/${path.split("/").map(encodeURIComponent).join("/")}`,
    );
    if (status === 200) return text(body, "sha");
  }
  return undefined;
}

/** Reads the whole tree in one response (GitHub truncates it at 100,000 entries), then each chosen file. */
async function readFiles(
  api: ForgeApi,
  repository: Repository,
  { wants, filesMax, fileBytesMax }: FileChoice,
): Promise<RepositoryFile[]> {
  const branch = checkBranch(await defaultBranch(api, repository));
  const { status, body } = await api(
    "GET",
    `${repoPath(repository)}/git/trees/${encodeURIComponent(branch)}?recursive=1`,
  );
  const tree: unknown = member(body, "tree");
  if (status !== 200 || !Array.isArray(tree)) return []; // 404 and 409: the repository has no commits
  const chosen = tree.flatMap((entry: unknown) => {
    const [path, sha, size, mode] = ["path", "sha", "size", "mode"].map((name) => member(entry, name));
    const isFile = mode === "100644" || mode === "100755";
    return isFile &&
      typeof path === "string" &&
      typeof sha === "string" &&
      isSha(sha) &&
      wants(path) &&
      Number(size) <= fileBytesMax
      ? [{ path, sha }]
      : [];
  });
  const files: RepositoryFile[] = [];
  for (const { path, sha } of chosen.slice(0, filesMax)) {
    const blob = await api("GET", `${repoPath(repository)}/git/blobs/${sha}`);
    if (blob.status === 200)
      files.push({ path, content: new Uint8Array(Buffer.from(text(blob.body, "content"), "base64")) });
  }
  return files;
}

async function getPullRequest(api: ForgeApi, repository: Repository, number: number): Promise<PullRequest | undefined> {
  const { status, body } = await api("GET", `${repoPath(repository)}/pulls/${Math.trunc(number)}`);
  return status === 200 ? pullRequest(body) : undefined;
}

async function diffPullRequest(api: ForgeApi, repository: Repository, number: number): Promise<string | undefined> {
  const path = `${repoPath(repository)}/pulls/${Math.trunc(number)}`;
  if ((await api("GET", path)).status !== 200) return undefined;
  const files = await allPages(api, `${path}/files`, CHANGED_FILES_MAX);
  return files
    .map((file) =>
      fileDiff({
        path: text(file, "filename"),
        oldPath: member(file, "previous_filename"),
        isNew: member(file, "status") === "added",
        isRemoved: member(file, "status") === "removed",
        hunks: member(file, "patch"),
      }),
    )
    .join("");
}

async function describePullRequest(
  api: ForgeApi,
  repository: Repository,
  number: number,
): Promise<PullRequestFacts | undefined> {
  const path = `${repoPath(repository)}/pulls/${Math.trunc(number)}`;
  const { status, body } = await api("GET", path);
  if (status !== 200) return undefined;
  const files = await allPages(api, `${path}/files`, CHANGED_FILES_MAX);
  const labels: unknown = member(body, "labels");
  return {
    labels: textsAmong(Array.isArray(labels) ? labels.map((label) => member(label, "name")) : []),
    author: text(member(body, "user"), "login"),
    base: text(member(body, "base"), "ref"),
    paths: textsAmong(files.flatMap((file) => [member(file, "filename"), member(file, "previous_filename")])),
  };
}

async function ensurePullRequest(api: ForgeApi, wanted: NewPullRequest): Promise<OpenedPullRequest> {
  const path = repoPath(wanted.repository);
  checkBranch(wanted.base);
  const sha = await branchSha(api, wanted.repository, wanted.head);
  if (sha === undefined) throw notFound("head_branch");
  if (sha !== wanted.headSha) throw headMoved(sha);
  const { head, base, title, body } = wanted;
  const opened = await api("POST", `${path}/pulls`, { title, head, base, body });
  if (opened.status === 201) return { ...pullRequest(opened.body), adopted: false };
  if (opened.status === 404) throw repositoryNotFound();
  // A 422 has many causes that only its text tells apart, so check whether a pull request is already open.
  const existing = await findOpen(api, wanted);
  if (existing) return { ...existing, adopted: true };
  throw pullRequestRefused(refusalText(opened.body));
}

async function findOpen(api: ForgeApi, wanted: NewPullRequest): Promise<PullRequest | undefined> {
  const query = new URLSearchParams({
    state: "open",
    head: `${wanted.repository.owner}:${wanted.head}`,
    base: wanted.base,
  });
  const { status, body } = await api("GET", `${repoPath(wanted.repository)}/pulls?${query.toString()}`);
  if (status !== 200 || !Array.isArray(body)) return undefined;
  return body.map(pullRequest).find((found) => found.head === wanted.head && found.base === wanted.base);
}

function pullRequest(body: unknown): PullRequest {
  const isMerged = member(body, "merged") === true || typeof member(body, "merged_at") === "string"; // lists lack `merged`
  return {
    number: Number(member(body, "number")),
    url: text(body, "html_url"),
    state: isMerged ? "merged" : text(body, "state") === "open" ? "open" : "closed",
    title: text(body, "title"),
    head: text(member(body, "head"), "ref"),
    headSha: text(member(body, "head"), "sha"),
    base: text(member(body, "base"), "ref"),
  };
}

/** GitHub puts the reason into `errors[].message`, else into `message`. */
function refusalText(body: unknown): unknown {
  const errors = member(body, "errors");
  const first: unknown = Array.isArray(errors) ? member(errors[0], "message") : undefined;
  return first ?? member(body, "message");
}

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
import { checkBranch, checkProject, isSha } from "./names.ts";

export type GitlabOptions = {
  /** API base, such as "https://gitlab.com/api/v4". */
  readonly baseUrl: string;
  /** A personal, group or project access token; "" for anonymous read access. */
  readonly token: string;
  readonly fetch?: typeof fetch;
};

const TREE_ENTRIES_MAX = 20_000;

/**
 * Returns a code host that uses GitLab's REST API; its merge requests are our pull requests. Errors of all calls: those
 * of `forgeApi`.
 */
export function gitlabHost(options: GitlabOptions): PullRequestHost {
  const baseUrl = options.baseUrl.replace(/\/+$/, "");
  const api = forgeApi({
    baseUrl,
    token: options.token,
    headers: { accept: "application/json" },
    returnedStatus: [400],
    fetch: options.fetch ?? fetch,
  });
  return {
    cloneUrl: (repository) => `${baseUrl.replace(/\/api\/v4$/, "")}/${checkProject(repository)}.git`,
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

const projectPath = (repository: Repository): string => `/projects/${encodeURIComponent(checkProject(repository))}`;

async function defaultBranch(api: ForgeApi, repository: Repository): Promise<string> {
  const { status, body } = await api("GET", projectPath(repository));
  if (status === 404) throw repositoryNotFound();
  return member(body, "default_branch") === null ? "main" : text(body, "default_branch"); // null: nothing was ever committed
}

async function branchSha(api: ForgeApi, repository: Repository, branch: string): Promise<string | undefined> {
  const { status, body } = await api(
    "GET",
    `${projectPath(repository)}/repository/branches/${encodeURIComponent(checkBranch(branch))}`,
  );
  return status === 200 ? text(member(body, "commit"), "id") : undefined;
}

async function commitOf(api: ForgeApi, repository: Repository, ref: string): Promise<string | undefined> {
  const name = checkBranch(ref);
  for (const path of [`branches/${encodeURIComponent(name)}`, `tags/${encodeURIComponent(name)}`]) {
    const { status, body } = await api("GET", `${projectPath(repository)}/repository/${path}`);
    if (status === 200) return text(member(body, "commit"), "id");
  }
  if (!isSha(name)) return undefined;
  const { status, body } = await api("GET", `${projectPath(repository)}/repository/commits/${name}`);
  return status === 200 ? text(body, "id") : undefined;
}

/** Reads the tree in pages, which lack sizes; then each chosen file, whose response has the size. */
async function readFiles(
  api: ForgeApi,
  repository: Repository,
  { wants, filesMax, fileBytesMax }: FileChoice,
): Promise<RepositoryFile[]> {
  const ref = encodeURIComponent(checkBranch(await defaultBranch(api, repository)));
  const tree = await allPages(
    api,
    `${projectPath(repository)}/repository/tree?ref=${ref}&recursive=true`,
    TREE_ENTRIES_MAX,
  );
  const chosen = tree.flatMap((entry) => {
    const [path, sha, mode] = ["path", "id", "mode"].map((name) => member(entry, name));
    const isFile = mode === "100644" || mode === "100755";
    return isFile && typeof path === "string" && typeof sha === "string" && isSha(sha) && wants(path)
      ? [{ path, sha }]
      : [];
  });
  const files: RepositoryFile[] = [];
  for (const { path, sha } of chosen) {
    if (files.length >= filesMax) break;
    const blob = await api("GET", `${projectPath(repository)}/repository/blobs/${sha}`);
    if (blob.status === 200 && Number(member(blob.body, "size")) <= fileBytesMax)
      files.push({ path, content: new Uint8Array(Buffer.from(text(blob.body, "content"), "base64")) });
  }
  return files;
}

async function getPullRequest(api: ForgeApi, repository: Repository, number: number): Promise<PullRequest | undefined> {
  const { status, body } = await api("GET", `${projectPath(repository)}/merge_requests/${Math.trunc(number)}`);
  return status === 200 ? mergeRequest(body) : undefined;
}

async function diffPullRequest(api: ForgeApi, repository: Repository, number: number): Promise<string | undefined> {
  const path = `${projectPath(repository)}/merge_requests/${Math.trunc(number)}`;
  if ((await api("GET", path)).status !== 200) return undefined;
  const files = await allPages(api, `${path}/diffs`, CHANGED_FILES_MAX);
  return files
    .map((file) =>
      fileDiff({
        path: text(file, "new_path"),
        oldPath: member(file, "old_path"),
        isNew: member(file, "new_file") === true,
        isRemoved: member(file, "deleted_file") === true,
        hunks: member(file, "diff"),
      }),
    )
    .join("");
}

async function describePullRequest(
  api: ForgeApi,
  repository: Repository,
  number: number,
): Promise<PullRequestFacts | undefined> {
  const path = `${projectPath(repository)}/merge_requests/${Math.trunc(number)}`;
  const { status, body } = await api("GET", path);
  if (status !== 200) return undefined;
  const files = await allPages(api, `${path}/diffs`, CHANGED_FILES_MAX);
  const labels: unknown = member(body, "labels");
  return {
    labels: textsAmong(Array.isArray(labels) ? labels : []),
    author: text(member(body, "author"), "username"),
    base: text(body, "target_branch"),
    paths: textsAmong(files.flatMap((file) => [member(file, "new_path"), member(file, "old_path")])),
  };
}

/** GitLab opens merge requests without changes, but never two with the same source and target. */
async function ensurePullRequest(api: ForgeApi, wanted: NewPullRequest): Promise<OpenedPullRequest> {
  const path = projectPath(wanted.repository);
  checkBranch(wanted.base);
  const sha = await branchSha(api, wanted.repository, wanted.head);
  if (sha === undefined) throw notFound("head_branch");
  if (sha !== wanted.headSha) throw headMoved(sha);
  const opened = await api("POST", `${path}/merge_requests`, {
    source_branch: wanted.head,
    target_branch: wanted.base,
    title: wanted.title,
    description: wanted.body,
  });
  if (opened.status === 201) return { ...mergeRequest(opened.body), adopted: false };
  if (opened.status === 404) throw repositoryNotFound();
  const query = new URLSearchParams({ state: "opened", source_branch: wanted.head, target_branch: wanted.base });
  const { status, body } = await api("GET", `${path}/merge_requests?${query.toString()}`);
  const existing =
    status === 200 && Array.isArray(body)
      ? body.map(mergeRequest).find(({ head, base }) => head === wanted.head && base === wanted.base)
      : undefined;
  if (existing) return { ...existing, adopted: true };
  throw pullRequestRefused(refusalText(opened.body));
}

const mergeRequest = (body: unknown): PullRequest => ({
  number: Number(member(body, "iid")),
  url: text(body, "web_url"),
  state: member(body, "state") === "merged" ? "merged" : member(body, "state") === "closed" ? "closed" : "open",
  title: text(body, "title"),
  head: text(body, "source_branch"),
  headSha: text(body, "sha"),
  base: text(body, "target_branch"),
});

/** GitLab puts the reason into `message`: a text or a list of texts. */
function refusalText(body: unknown): unknown {
  const message = member(body, "message");
  return Array.isArray(message) ? (message as unknown[])[0] : (message ?? member(body, "error"));
}

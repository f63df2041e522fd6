export type {
  CodeHost,
  Diff,
  DiffFile,
  FileChoice,
  NewPullRequest,
  OpenedPullRequest,
  PullRequest,
  PullRequestFacts,
  PullRequestHost,
  Repository,
  RepositoryFile,
} from "./code-host.ts";
export {
  FORGE_RESOURCES,
  forgeReader,
  type ForgeResponse,
  type ForgeRead,
  type ForgeReader,
  type ForgeResource,
} from "./forge-reader.ts";
export { githubHost, type GithubOptions } from "./github-host.ts";
export { gitlabHost, type GitlabOptions } from "./gitlab-host.ts";
export { localHost, type LocalHost, type LocalOptions } from "./local-host.ts";
export { isBranchName, isRepositoryName, isSha } from "./names.ts";

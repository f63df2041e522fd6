import { invalidArgument } from "@millwright/errors";
import { revisionOf, type GitSettings, type SourceSettings, type Tree } from "../domain/source.ts";
import { checkRepository, isAbsentHere, type GitCredential, type GitRules } from "./git-repository.ts";
import { readGitHead, readGitTree } from "./git-tree.ts";

export type TreeDeps = GitRules & {
  /** Returns the current value of a team's managed secret; undefined if absent. */
  secretOf: (teamUid: string, name: string) => Promise<string | undefined>;
};

/** Returns a reader of definition trees and branch heads. */
export const definitionTrees = (deps: TreeDeps) => ({
  check(source: SourceSettings): void {
    if (source.kind === "git") checkRepository(deps, source.url);
  },
  isMissing: async (source: SourceSettings): Promise<boolean> => source.kind === "git" && isAbsentHere(source.url),
  async take(source: SourceSettings, teamUid: string, sha?: string): Promise<Tree> {
    if (source.kind === "files") return { revision: revisionOf(source.files), files: source.files };
    return readGitTree(deps, source, await credentialOf(deps, source, teamUid), sha);
  },
  async headOf(source: GitSettings, teamUid: string): Promise<string | undefined> {
    return readGitHead(deps, source, await credentialOf(deps, source, teamUid));
  },
});

/** Errors: secret_missing · secret_malformed. */
async function credentialOf(
  { secretOf }: TreeDeps,
  { url, secretName, username }: GitSettings,
  teamUid: string,
): Promise<GitCredential | undefined> {
  if (secretName === undefined) return undefined;
  const password = await secretOf(teamUid, secretName);
  if (password === undefined)
    throw invalidArgument(
      "secret_missing",
      `The team has no managed secret named ${secretName}; the source needs it to read the repository.`,
    );
  if (/[\r\n\0]/.test(password))
    throw invalidArgument(
      "secret_malformed",
      `The managed secret ${secretName} must be a password or token on one line.`,
    );
  return {
    username: username ?? (/(^|\.)gitlab\./.test(new URL(url).hostname) ? "oauth2" : "x-access-token"),
    password,
  };
}

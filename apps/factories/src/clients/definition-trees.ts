import { revisionOf, type SourceSettings, type Tree } from "../domain/source.ts";
import { checkRepository, readGitTree, type GitSettings } from "./git-tree.ts";

/** Definition trees, from wherever a source says. */
export const definitionTrees = (settings: GitSettings) => ({
  check(source: SourceSettings): void {
    if (source.kind === "git") checkRepository(settings, source.url);
  },
  async take(source: SourceSettings): Promise<Tree> {
    return source.kind === "git" ? readGitTree(settings, source) : { revision: revisionOf(source.files), files: source.files };
  },
});

import type { worker } from "@millwright/contracts";

/** A repository in a workspace. */
export type WorkingCopy = {
  readonly repository: worker.Repository;
  /** The directory, relative to the workspace. */
  readonly directory: string;
  /** The target branch of pull requests. */
  readonly baseBranch: string;
  /** The commit of the base branch when the clone was created. */
  readonly baseSha: string;
  /**
   * The last known commit of the work branch on the code host; "" if the branch does not exist. A push is rejected if
   * the branch is at any other commit.
   */
  pushedSha: string;
};

export const isLocal = (repository: worker.Repository): boolean => repository.codeHost === "local";
export const nameOf = (repository: worker.Repository): string => `${repository.owner}/${repository.name}`;

/** Returns the path of a local repository, from a path or a `file:` URL. */
export const localPath = (repository: worker.Repository): string =>
  repository.cloneUrl.startsWith("file:") ? new URL(repository.cloneUrl).pathname : repository.cloneUrl;

/**
 * Returns the directory names: the repository's name, prefixed with its owner if two repositories have the same name.
 */
export function directoriesOf(repositories: readonly worker.Repository[]): string[] {
  return repositories.map((repository) => {
    const isShared = repositories.filter(({ name }) => name === repository.name).length > 1;
    const directory = isShared ? `${repository.owner}-${repository.name}` : repository.name;
    if (!/^[\w][\w.-]*$/.test(directory)) throw new Error(`A repository directory cannot be named ${directory}.`);
    return directory;
  });
}

export const isSha = (text: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

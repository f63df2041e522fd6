import type { worker } from "@millwright/contracts";

/** A repository as it lies in a workspace. */
export type WorkingCopy = {
  readonly repository: worker.Repository;
  /** Directory beneath the workspace. */
  readonly directory: string;
  /** Branch a pull request goes into. */
  readonly baseBranch: string;
  /** Its commit when this clone was made. */
  readonly baseSha: string;
  /** Commit of the work branch on the code host as we know it; "" = there is none. Any other one refuses our push. */
  pushedSha: string;
};

export const isLocal = (repository: worker.Repository): boolean => repository.codeHost === "local";
export const nameOf = (repository: worker.Repository): string => `${repository.owner}/${repository.name}`;

/** The path of a local repository, from a path or a file: URL. */
export const localPath = (repository: worker.Repository): string =>
  repository.cloneUrl.startsWith("file:") ? new URL(repository.cloneUrl).pathname : repository.cloneUrl;

/** Directory names: the repository's own, or with its owner where two have the same. */
export function directoriesOf(repositories: readonly worker.Repository[]): string[] {
  return repositories.map((repository) => {
    const isShared = repositories.filter(({ name }) => name === repository.name).length > 1;
    const directory = isShared ? `${repository.owner}-${repository.name}` : repository.name;
    if (!/^[\w][\w.-]*$/.test(directory)) throw new Error(`A repository cannot be called ${directory}.`);
    return directory;
  });
}

export const isSha = (text: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

/**
 * Normalises the address of a repository to `host/owner/repo` in lower case, from https with or without a user, or ssh
 * in either spelling, with or without `.git`. Returns undefined if it is not a repository address, such as a local
 * path.
 */
export function repositoryAddress(url: string): string | undefined {
  const scp = /^(?:[\w.-]+@)?([\w.-]+):(?!\/)(.+)$/.exec(url);
  const parsed = scp ? undefined : /^(?:https?|ssh|git):/i.test(url) && URL.canParse(url) ? new URL(url) : undefined;
  const [host, path] = scp ? [scp[1]!, scp[2]!] : [parsed?.host ?? "", parsed?.pathname ?? ""];
  const name = path.replace(/^\/+|\/+$/g, "").replace(/\.git$/i, "");
  return host === "" || !name.includes("/") ? undefined : `${host}/${name}`.toLowerCase();
}

import { execFile } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const EXAMPLES = fileURLToPath(new URL("../../../../examples", import.meta.url));
const run = promisify(execFile);
/** Fixed dates, so that commits have the same ids on every start; manifests of benchmarks contain these ids. */
const COMMIT_DATES = { GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z", GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z" };

export type DemoRepositories = { codeRoot: string; bareRepository: string; definitionRepository: string };

/**
 * Creates the repositories of the demo: a bare repository `acme/price-list` with a small program and a failing test,
 * and a git repository with the definition of the factory (a directory of `examples`). The definition names the model,
 * so that provider keys in the environment have no influence.
 */
export async function createDemoRepositories(
  directory: string,
  model: string,
  definition = "first-factory",
): Promise<DemoRepositories> {
  const codeRoot = join(directory, "code");
  const bareRepository = join(codeRoot, "acme", "price-list.git");
  const checkout = join(directory, "checkout");
  await cp(join(EXAMPLES, "price-list"), checkout, { recursive: true });
  await commitAll(checkout, "Add the price list");
  await mkdir(join(codeRoot, "acme"), { recursive: true });
  await git(directory, "clone", "--quiet", "--bare", checkout, bareRepository);
  const definitionRepository = join(directory, "definition");
  await cp(join(EXAMPLES, definition), definitionRepository, { recursive: true });
  const settings = join(definitionRepository, "factory.yaml");
  await writeFile(
    settings,
    (await readFile(settings, "utf8")).replace("model: auto", `model: ${JSON.stringify(model)}`),
  );
  await commitAll(definitionRepository, "Define the factory");
  return { codeRoot, bareRepository, definitionRepository };
}

/** Returns the branches of a repository, ordered by name. */
export async function branchesOf(repository: string): Promise<string[]> {
  return (await git(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads")).split("\n").filter(Boolean);
}

async function commitAll(target: string, message: string): Promise<void> {
  await git(target, "init", "--quiet", "--initial-branch=main");
  await git(target, "add", "--all");
  await git(target, "commit", "--quiet", "--message", message);
}

async function git(directory: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(
    "git",
    [
      "-c",
      "user.name=Demo",
      "-c",
      "user.email=demo@example.com",
      "-c",
      "commit.gpgsign=false",
      "-C",
      directory,
      ...args,
    ],
    {
      env: {
        PATH: "/usr/local/bin:/usr/bin:/bin",
        HOME: directory,
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_CONFIG_SYSTEM: "/dev/null",
        ...COMMIT_DATES,
      },
    },
  );
  return stdout;
}

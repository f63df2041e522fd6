import { execute } from "../../src/execute.ts";

/** Runs a command line and returns its exit code and what it printed. */
export async function admin(line: string, env: NodeJS.ProcessEnv = {}) {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await execute(line === "" ? [] : line.split(" "), {
    env,
    print: (text) => void printed.push(text),
    printError: (text) => void errors.push(text),
  });
  return { code, printed: printed.join("\n"), errors: errors.join("\n") };
}

/** Returns the variables that name the database of each service. */
export const namedDatabases = (databases: Readonly<Record<string, { readonly url: string }>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(databases).map(([service, { url }]) => [
      `${service.toUpperCase().replaceAll("-", "_")}_DATABASE_URL`,
      url,
    ]),
  );

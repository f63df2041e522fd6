import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export type Login = { url: string; apiKey: string };

const fileOf = (env: NodeJS.ProcessEnv): string =>
  join(env["XDG_CONFIG_HOME"] ?? join(env["HOME"] ?? ".", ".config"), "millwright", "login.json");

/** Returns the stored login, if there is one. */
export function readLogin(env: NodeJS.ProcessEnv): Login | undefined {
  try {
    return JSON.parse(readFileSync(fileOf(env), "utf8")) as Login;
  } catch {
    return undefined;
  }
}

/** Stores URL and key for later commands, readable by this user only. */
export function writeLogin(env: NodeJS.ProcessEnv, login: Login): string {
  const file = fileOf(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, JSON.stringify(login), { mode: 0o600 });
  return file;
}

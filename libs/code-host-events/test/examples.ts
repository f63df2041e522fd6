import { createRequire } from "node:module";
import type { CodeHostDelivery } from "../src/index.ts";

type Example = { readonly action?: string } & Record<string, unknown>;
const published = createRequire(import.meta.url)("@octokit/webhooks-examples") as readonly {
  readonly name: string;
  readonly examples: readonly Example[];
}[];

/** The published example payloads of one of GitHub's events. */
export const examplesOf = (name: string): readonly Example[] =>
  published.find((one) => one.name === name)?.examples ?? [];

/** A published example with members replaced, by paths such as `review.body`. */
export function exampleOf(
  name: string,
  action: string | undefined,
  changes: Readonly<Record<string, unknown>> = {},
  isWanted: (example: Example) => boolean = () => true,
): Example {
  const found = examplesOf(name).find((one) => one.action === action && isWanted(one));
  if (!found) throw new Error(`there is no example of ${name} ${action ?? ""}`);
  const copy = structuredClone(found);
  for (const [path, value] of Object.entries(changes)) {
    const names = path.split(".");
    const last = names.pop()!;
    let target = copy as Record<string, unknown>;
    for (const each of names) target = (target[each] ??= {}) as Record<string, unknown>;
    target[last] = value;
  }
  return copy;
}

export const allExamples = published.flatMap(({ name, examples }) => examples.map((payload) => ({ name, payload })));

export const fromGithub = (name: string, payload: unknown, botLogin = ""): CodeHostDelivery => ({
  provider: "github",
  headers: { "x-github-event": name, "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(payload)),
  botLogin,
});
export const fromGitlab = (payload: unknown, botLogin = "mill-bot"): CodeHostDelivery => ({
  provider: "gitlab",
  headers: { "x-gitlab-event": "any", "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(payload)),
  botLogin,
});

import { expect, test } from "@jest/globals";
import { codeHosts } from "./code-hosts.ts";

test.each([
  ["github", "https://api.github.com", "https://github.com/acme/shop.git", "/repos/acme/shop"],
  ["gitlab", "https://gitlab.com/api/v4", "https://gitlab.com/acme/shop.git", "/api/v4/projects/acme%2Fshop"],
] as const)("reads from a %s connection with the API of its kind", async (kind, baseUrl, cloneUrl, path) => {
  const asked: string[] = [];
  const reach = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    asked.push(`${new URL(request.url).pathname} ${request.headers.get("authorization")}`);
    return Response.json({ default_branch: "trunk" });
  };
  const opened = codeHosts(reach)({ kind, baseUrl, root: "" }, "t0ken");
  const repository = { owner: "acme", repo: "shop" };
  expect([opened.kind, opened.host.cloneUrl(repository), await opened.host.defaultBranch(repository)]).toEqual([
    kind,
    cloneUrl,
    "trunk",
  ]);
  expect(asked).toEqual([`${path} Bearer t0ken`]);
});

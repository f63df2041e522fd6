import { expect, test } from "@jest/globals";
import { repositoryOf } from "./branch.ts";

test.each([
  ["https://github.com/acme/factory.git", "acme", "factory", "GITHUB"],
  ["https://github.corp.example/acme/factory", "acme", "factory", "GITHUB"],
  ["https://gitlab.com/group/sub/factory.git", "group/sub", "factory", "GITLAB"],
  ["https://dev.azure.com/org/project/_git/factory", "org/project", "factory", "AZURE_DEVOPS"],
  ["https://git.example:8443/a%20b/factory/", "a b", "factory", "NONE"],
  ["https://notgithub.com/acme/factory", "acme", "factory", "NONE"],
  ["https://git.example/%zz/factory", "%zz", "factory", "NONE"],
  ["/srv/git/acme/factory.git", "acme", "factory", "NONE"],
  ["/srv/acme/factory/.git", "acme", "factory", "NONE"],
  ["/factory", "", "factory", "NONE"],
])("the repository %s is %s/%s of %s", (url, owner, repo, codeForge) =>
  expect(repositoryOf(url)).toEqual({ owner, repo, codeForge }),
);

import { describe, expect, test } from "@jest/globals";
import { checkEnvironmentConfig } from "./environment.ts";

test("stores all known members and ignores null and unknown ones", () =>
  expect(
    checkEnvironmentConfig({
      name: " Web ",
      description: null,
      docker_image: "node:24",
      github_repos: [{ owner: "o", repo: "r", extra: 1 }],
      setup_commands: ["npm ci"],
      secrets: [{ name: "A" }],
      allowed_hosts: ["example.com", "*.example.com:8443", "[fd00::1]:*", "*"],
      failure_session_retention_minutes: 30,
      unknown: true,
    }),
  ).toEqual({
    name: "Web",
    docker_image: "node:24",
    github_repos: [{ owner: "o", repo: "r" }],
    setup_commands: ["npm ci"],
    secrets: [{ name: "A" }],
    allowed_hosts: ["example.com", "*.example.com:8443", "[fd00::1]:*", "*"],
    failure_session_retention_minutes: 30,
  }));

test("an empty configuration is named Environment", () =>
  expect(checkEnvironmentConfig({})).toEqual({ name: "Environment" }));

describe("refused", () => {
  test.each([
    { name: 5 },
    { name: "x".repeat(101) },
    { github_repos: [{ owner: "o" }] },
    { github_repos: [{ owner: "../x", repo: "a/b" }] },
    { github_repos: "o/r" },
    { setup_commands: [1] },
    { setup_commands: [""] },
    { secrets: ["A"] },
    ...["", "http://example.com", "*.*", "example.com:65536", "a b", 5].map((host) => ({ allowed_hosts: [host] })),
    { allowed_hosts: "example.com" },
    { failure_session_retention_minutes: 61 },
    { failure_session_retention_minutes: 0 },
    { providers: [] },
  ])("%j", (config) =>
    expect(() => checkEnvironmentConfig(config)).toThrow(expect.objectContaining({ reason: "invalid_environment" })),
  );
});

import { expect, test } from "@jest/globals";
import { returnPath } from "./return-path.ts";

test.each(["/", "/runs?state=SUCCEEDED&q=a%20b", "/factories/x/events/y", "/runs/018f?view=abc.def", "/apis"])(
  "returns to the page %s",
  (path) => expect(returnPath(path)).toBe(path),
);

test.each([
  ...[
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/runs/\\evil",
    "\\\\evil.example",
    "javascript:alert(1)",
  ],
  ...["/\r\nx: y", "/\t/evil.example", " /runs", "runs", ""],
  ...[
    "/api/v1/whoami",
    "/session",
    "/sign-in/oidc",
    "/rpc/x",
    "/docs",
    `/runs/mw_${"x".repeat(40)}`,
    `/${"x".repeat(3000)}`,
  ],
  null,
  undefined,
])("returns to / instead of %j", (path) => expect(returnPath(path)).toBe("/"));

import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;
let secrets: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  factory = (await api.post("/factory", { name: "Works" })).uid;
  secrets = `/team/${await teamOf(api)}/secrets`;
});
afterAll(() => platform?.remove());

const deliver = (url: string, id: string) =>
  api.fetch(url, { method: "POST", headers: { "x-service-delivery-id": id }, body: "{}" });

test("a managed secret that a url_token webhook uses accepts only URL-safe values, and retains the old one otherwise", async () => {
  await api.post(secrets, { name: "HOOK", value: "first" });
  const webhook = await api.post(`/factory/${factory}/webhooks`, {
    name: "hook",
    auth_mode: "url_token",
    secret_name: "HOOK",
  });
  const addressWith = (secret: string) => webhook.ingress_url.replace("{token}", secret);

  expect(await api.call("PUT", `${secrets}/HOOK`, { body: { value: "not/safe" } })).toMatchObject({
    status: 400,
    body: { reason: "invalid_secret", detail: expect.stringContaining("hook") },
  });
  expect((await deliver(addressWith("first"), "1")).status).toBe(202);
  await api.put(`${secrets}/HOOK`, { value: "second~safe" });
  expect([
    (await deliver(addressWith("first"), "2")).status,
    (await deliver(addressWith("second~safe"), "2")).status,
  ]).toEqual([401, 202]);
});

test("a query string that is too long gets problem+json", async () => {
  const { status, headers, text } = await api.fetch(`${platform.url}/api/v1/agent/runs?q=${"x".repeat(100_000)}`);
  expect([status, headers.get("content-type")]).toEqual([400, "application/problem+json"]);
  expect(JSON.parse(text)).toMatchObject({ reason: "request_head_too_large", error_code: "invalid_request" });
});

test("the OpenAPI document has the URLs that senders deliver to, and metadata as deepObject", () => {
  const { paths } = api.document;
  for (const path of ["/webhooks/w/{webhook_uid}", "/webhooks/w/{webhook_uid}/{token}"]) {
    expect([path, Object.keys(paths[path]!["post"].responses), paths[path]!["post"].security]).toEqual([
      path,
      ["202", "400", "401", "404", "413", "429"],
      [],
    ]);
  }
  const metadata = paths["/api/v1/agent/runs"]!["get"].parameters.find(
    ({ name }: { name: string }) => name === "metadata",
  );
  expect(metadata).toMatchObject({ in: "query", style: "deepObject", explode: true, schema: { type: "object" } });
});

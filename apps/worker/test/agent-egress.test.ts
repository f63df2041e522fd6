import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { EgressProxy } from "../src/egress/egress-proxy.ts";
import { LOOPBACK, outboundRule } from "@millwright/outbound";
import { GitGateway } from "../src/egress/git-gateway.ts";
import { EgressPolicy, NO_EGRESS } from "../src/egress/policy.ts";
import { bareHost } from "../src/sandbox/spec.ts";
import { executionDir } from "./support/a-context.ts";
import { TestGate } from "./support/outbound-gate.ts";
import { ends, execute, script } from "./support/execute.ts";
import { aBareRepository, aRepository, git } from "./support/repositories.ts";
import { withSmartHttp } from "./support/smart-http.ts";
import { inBubblewrap, withDirectory } from "./support/sandboxes.ts";

/** Starts a web server of this machine, at an address that proxy variables do not exclude. */
async function withOrigin(use: (url: string, port: number) => Promise<void>): Promise<void> {
  const server = createServer((request, response) => response.end(`hello ${request.url}`));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.2", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await use(`http://127.0.0.2:${port}`, port);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const shell = (command: string): string => `- shell: ${JSON.stringify(command)}`;
const outputs = (events: Parameters<typeof ends>[0]) =>
  ends(events).map(({ output }) => (output as { output: string }).output.trim());
const fetchText = (url: string): string =>
  `/.millwright/node --no-warnings -e "fetch('${url}').then(async (r) => console.log(r.status, (await r.text()).trim()), (e) => console.log('failed', e.cause?.message ?? e.message))"`;

inBubblewrap("an agent", () => {
  test("reaches the hosts that the operator allows, only through the worker; every denial is an event of its run", () =>
    withDirectory((root) =>
      withOrigin(async (url, port) => {
        const host = {
          ...bareHost("bwrap"),
          egress: { allow: [`127.0.0.2:${port}`, "127.0.0.3:*"], internal: ["127.0.0.2"] },
        };
        const prompt = script(
          shell(fetchText(`${url}/a`)),
          shell(`env -u NODE_USE_ENV_PROXY ${fetchText(`${url}/b`)}`),
          shell(
            `${fetchText("http://127.0.0.3:8080/")}; ${fetchText("http://evil.test/")}; ${fetchText("https://evil.test/")}; true`,
          ),
          shell("echo $HTTPS_PROXY $http_proxy $NO_PROXY"),
        );
        const { result, events } = await execute({ dir: await executionDir(root, "e1"), host, prompt });
        expect(result.outcome).toBe("DONE");
        const [allowed, direct, refused, env] = outputs(events);
        expect(allowed).toBe("200 hello /a");
        expect(direct).toMatch(/^failed/); // there is no direct network access
        expect(refused).not.toContain("200");
        expect(env).toBe("http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1");
        expect(events.filter(({ kind }) => kind === "egress_denied").map(({ payload }) => payload)).toEqual([
          { host: "127.0.0.3", port: 8080, reason: "internal_address" },
          { host: "evil.test", port: 80, reason: "host_not_allowed" },
          { host: "evil.test", port: 443, reason: "host_not_allowed" },
        ]);
      }),
    ));

  test("reaches no host that its environment omits", () =>
    withDirectory((root) =>
      withOrigin(async (url, port) => {
        const host = { ...bareHost("bwrap"), egress: { allow: [`127.0.0.2:${port}`], internal: ["127.0.0.2"] } };
        const egress = create(worker.EgressPolicySchema, { allowedHosts: [] });
        const { events } = await execute({
          dir: await executionDir(root, "e1"),
          host,
          prompt: script(shell(`${fetchText(url)}; true`)),
          assignment: { egress },
        });
        expect(events.filter(({ kind }) => kind === "egress_denied").map(({ payload }) => payload)).toEqual([
          { host: "127.0.0.2", port, reason: "host_not_allowed" },
        ]);
      }),
    ));

  test("fetches from its run's repository without a credential, and cannot push to it", () =>
    withDirectory((root) => {
      const bare = aBareRepository(root);
      return withSmartHttp(root, bare, async ({ url, header }) => {
        git(bare, "branch", "later", "main");
        const repository = aRepository(url, { codeHost: "github", authorizationHeader: header });
        const prompt = script(
          shell(
            "git fetch --quiet origin later && git rev-parse FETCH_HEAD && git remote get-url --push origin | cut -c-26",
          ),
          shell("git push origin HEAD:refs/heads/stolen; true"),
          shell(`(env; git config --list; cat .git/config) | grep -c '${header.slice(-20)}'; true`),
        );
        const { result, events } = await execute({
          dir: await executionDir(root, "e1"),
          prompt,
          assignment: { repositories: [repository] },
        });
        expect(result.outcome).toBe("DONE");
        const [fetched, pushed, found] = outputs(events);
        expect(fetched).toBe(`${git(bare, "rev-parse", "later")}\nhttp://127.0.0.1:3128/git/`);
        expect(pushed).toMatch(/403/);
        expect([found, git(bare, "branch", "--list", "stolen")]).toEqual(["0", ""]);
        expect(events.filter(({ kind }) => kind === "egress_denied").map(({ payload }) => payload["reason"])).toEqual([
          "push_not_allowed",
        ]);
      });
    }));
});

test("access to a repository is for git only, with the key of its sandbox, and follows a renamed repository on its own host", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    if (request.url?.startsWith("/acme/old.git/info"))
      response.writeHead(301, { location: request.url.replace("old", "new") }).end();
    else if (request.url?.startsWith("/acme/away.git"))
      response.writeHead(302, { location: "http://127.0.0.9/x" }).end();
    else response.end("refs");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme`;
  const [old, away] = ["old", "away"].map((name) =>
    aRepository(`${at}/${name}.git`, { authorizationHeader: "Basic secret" }),
  );
  const gateway = new GitGateway([old!, away!], false, outboundRule(LOOPBACK));
  const { proxy, port } = await EgressProxy.listenLocally({
    policy: new EgressPolicy(NO_EGRESS),
    gate: new TestGate(),
    git: gateway,
    onDenied: () => undefined,
  });
  try {
    const base = gateway.urlOf(`http://127.0.0.1:${port}`, old!);
    const status = async (url: string, method = "GET") => (await fetch(url, { method, redirect: "manual" })).status;
    expect(
      await (
        await fetch(`${base}/info/refs?service=git-upload-pack`, { headers: { authorization: "Basic agent" } })
      ).text(),
    ).toBe("refs");
    expect(await status(`${base}/git-upload-pack`, "POST")).toBe(200);
    expect(asked).toEqual(
      [
        "GET /acme/old.git/info/refs?service=git-upload-pack",
        "GET /acme/new.git/info/refs?service=git-upload-pack",
        "POST /acme/new.git/git-upload-pack",
      ].map((line) => `${line} Basic secret`),
    );
    const urls = [
      `${base}/info/refs`,
      `${base}/objects/info/packs`,
      `${base}/../../1/info/refs?service=git-upload-pack`,
      base.replace(/git\/[^/]+/, "git/wrong-key") + "/info/refs?service=git-upload-pack",
      base.replace(/\d+$/, "7") + "/info/refs?service=git-upload-pack",
    ];
    expect(await Promise.all(urls.map((url) => status(url)))).toEqual([404, 404, 404, 404, 404]);
    expect([
      await status(`${base}/info/refs?service=git-receive-pack`),
      await status(`${base}/git-receive-pack`, "POST"),
    ]).toEqual([403, 403]);
    expect(await status(`${gateway.urlOf(`http://127.0.0.1:${port}`, away!)}/info/refs?service=git-upload-pack`)).toBe(
      302,
    );
    expect(asked.length).toBe(4);
  } finally {
    proxy.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

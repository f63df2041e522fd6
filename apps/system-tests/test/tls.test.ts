import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually, loopbackCertificate } from "@millwright/testing";
import { Cluster, SERVICES } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { script, spawn, succeeded } from "./support/runs.ts";
import { aFactory, definitionFiles } from "./support/resources.ts";

const { ca, server } = loopbackCertificate();
let dir: string;
let cluster: Cluster;
let api: Client;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "millwright-tls-"));
  const file = (name: string, text: string) => {
    writeFileSync(join(dir, name), text, { mode: 0o600 });
    return join(dir, name);
  };
  cluster = await Cluster.start({
    tls: { caFile: file("ca.pem", ca), certFile: file("cert.pem", server.cert), keyFile: file("key.pem", server.key) },
  });
  api = await connect(cluster);
});
afterAll(async () => {
  await cluster?.remove();
  rmSync(dir, { recursive: true, force: true });
});

test("services that use TLS between each other apply a definition, run a tree and store its task", async () => {
  const factory = await aFactory(api, definitionFiles("No script here."));
  const { run_id: root } = await api.post(`/factory/${factory}/runs`, {
    prompt: script(spawn(script("say: I help."), "helper"), "wait: all", "stage: REVIEW"),
  });
  await succeeded(api, root);
  expect(await eventually(() => api.get(`/factory/${factory}/task-by-run?run_id=${root}`))).toMatchObject({
    stage: "REVIEW",
    run_id: root,
  });
});

/** Returns the result of a TLS handshake with each RPC port. */
const handshakes = (trusted: string | undefined): Promise<string[]> =>
  Promise.all(
    SERVICES.flatMap((service) => cluster.rpcUrls(service)).map(
      (url) =>
        new Promise<string>((resolve) => {
          const socket = connectTls({
            host: "127.0.0.1",
            port: Number(new URL(url).port),
            ALPNProtocols: ["h2"],
            ...(trusted && { ca: trusted }),
          });
          socket
            .once("secureConnect", () => resolve("secure"))
            .once("error", (error: NodeJS.ErrnoException) => resolve(String(error.code)));
          socket.once("close", () => resolve("closed"));
          socket.once("secureConnect", () => socket.destroy());
        }),
    ),
  );

test("every RPC port presents the certificate, which clients that trust its authority accept", async () => {
  expect(await handshakes(ca)).toEqual(Array(2 * SERVICES.length).fill("secure"));
  expect(await handshakes(undefined)).toEqual(Array(2 * SERVICES.length).fill("UNABLE_TO_VERIFY_LEAF_SIGNATURE"));
  for (const url of cluster.rpcUrls("orchestrator"))
    await expect(fetch(url.replace("https:", "http:"))).rejects.toThrow("fetch failed");
});

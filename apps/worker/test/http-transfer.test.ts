import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "@jest/globals";
import { upload } from "../src/executions/http-transfer.ts";

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Starts a blob store that accepts connections and data but never responds. */
async function silentStore(): Promise<string> {
  server = createServer((request) => void request.resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/blobs/x`;
}

test("an upload without a response from the store times out and may be retried", async () => {
  const place = { uploadUrl: await silentStore(), uploadHeaders: {} };
  await expect(upload(place, new Blob(["content"]), new AbortController().signal, 50)).rejects.toMatchObject({
    reason: "platform_unavailable",
    retryable: true,
  });
});

test("an upload ends with its execution, for its reason", async () => {
  const place = { uploadUrl: await silentStore(), uploadHeaders: {} };
  const over = new AbortController();
  const under = upload(place, new Blob(["content"]), over.signal, 600_000);
  over.abort(new Error("cancelled"));
  await expect(under).rejects.toThrow("cancelled");
});

import { createRouterTransport } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { clientFor } from "./client.ts";

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", onUnhandled);
});
afterEach(() => {
  process.off("unhandledRejection", onUnhandled);
});

const subscribe = () =>
  clientFor(worker.WorkerService, {
    ...createRouterTransport(() => {}),
    stream: () => Promise.reject(new Error("The client has disconnected.")),
  }).subscribe({});

test("a stream that fails before it is read rejects in its reader only", async () => {
  subscribe();
  await new Promise(setImmediate);
  expect(unhandled).toEqual([]);
  await expect(subscribe()[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(DomainError);
});

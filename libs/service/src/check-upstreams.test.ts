import { expect, test } from "@jest/globals";
import { memoryLog } from "@millwright/testing";
import { checkUpstreams } from "./check-upstreams.ts";

const upstreams = { gateway: ["http://a:1", "http://b:1"], scoring: ["http://c:1"] };

test("warns of each address that does not serve, after several probes", async () => {
  const log = memoryLog();
  const probed: string[] = [];
  const probe = async (url: string) => {
    probed.push(url);
    if (url === "http://c:1") return "refused";
    return url === "http://b:1" && probed.length < 10 ? "not yet" : undefined;
  };
  await checkUpstreams({ upstreams, probe, log, intervalMs: 0 }, new AbortController().signal);
  expect(log.entries).toMatchObject([
    { level: "warn", fields: { component: "scoring", address: "c:1" }, message: "an upstream service does not serve" },
  ]);
  expect(probed.filter((url) => url === "http://c:1")).toHaveLength(10);
  expect(probed.filter((url) => url === "http://a:1")).toHaveLength(1);
});

test("ends without a warning when the service stops", async () => {
  const log = memoryLog();
  const stopping = new AbortController();
  const probe = async () => {
    stopping.abort();
    return "refused";
  };
  await checkUpstreams({ upstreams, probe, log }, stopping.signal);
  expect(log.entries).toEqual([]);
});

import { AUTHORIZED, RUN_BODY } from "../api.ts";
import { floorsOf } from "../baseline/start.ts";
import type { Bench } from "../bench.ts";
import { compare, drive, type Endpoint } from "../load.ts";
import { serversOf } from "../platform.ts";
import type { Measured } from "../results.ts";

const JSON_BODY = { method: "POST", headers: { "content-type": "application/json" }, body: RUN_BODY } as const;

/** Measures durable creation over REST: every implementation responds after the commit. */
export async function measureCreation({ platform, baseline, meter, isQuick }: Bench): Promise<Measured[]> {
  const peers =
    isQuick || platform.setup === "processes"
      ? ["pg-boss"]
      : ["pg-boss", "graphile-worker", "floor-with-pg-boss", "floor-with-graphile-worker"];
  const endpoints: Endpoint[] = [
    {
      ...JSON_BODY,
      who: "millwright",
      processes: serversOf(platform),
      url: `${platform.url}/api/v1/agent/runs`,
      headers: AUTHORIZED,
    },
    ...floorsOf(baseline).map(({ who, url, processes }) => ({ ...JSON_BODY, who, processes, url: `${url}/floor` })),
    ...peers.map((who) => ({
      ...JSON_BODY,
      who,
      processes: baseline.single.processes,
      url: `${baseline.single.url}/${who}`,
    })),
  ];
  for (const endpoint of endpoints) await drive(endpoint, 8, isQuick ? 1 : 2);
  const size = { seconds: isQuick ? 1 : 1.5, rounds: 2, meter };
  return [
    ...(await compare("create a run, one at a time", endpoints, { ...size, connections: 1 })),
    ...(await compare("create a run, 16 at a time", endpoints, { ...size, connections: 16 })),
  ];
}

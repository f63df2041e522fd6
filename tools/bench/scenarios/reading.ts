import { api, AUTHORIZED, createRun, RUN_BODY } from "../api.ts";
import { floorsOf } from "../baseline/start.ts";
import type { Bench } from "../bench.ts";
import { compare, drive, type Endpoint } from "../load.ts";
import { serversOf } from "../platform.ts";
import type { Measured } from "../results.ts";

const RUNS = 40;

/** Measures reads of runs by id, over a few dozen runs in turn. */
export async function measureReading({ platform, baseline, meter, isQuick }: Bench): Promise<Measured[]> {
  const ours = await Promise.all(Array.from({ length: RUNS }, () => createRun(platform.url)));
  const theirs = await Promise.all(Array.from({ length: RUNS }, () => createRow(baseline.single.url)));
  await api(platform.url, `/agent/runs/${ours[0]}`);
  const endpoints: Endpoint[] = [
    {
      who: "millwright",
      processes: serversOf(platform),
      url: platform.url,
      method: "GET",
      headers: AUTHORIZED,
      paths: ours.map((uid) => `/api/v1/agent/runs/${uid}`),
    },
    ...floorsOf(baseline).map(({ who, url, processes }): Endpoint => ({
      who,
      url,
      processes,
      method: "GET",
      paths: theirs.map((uid) => `/floor/${uid}`),
    })),
  ];
  for (const endpoint of endpoints) await drive(endpoint, 8, isQuick ? 1 : 3);
  const size = { seconds: isQuick ? 1 : 2, rounds: 2, meter };
  return [
    ...(await compare("read a run, one at a time", endpoints, { ...size, connections: 1 })),
    ...(await compare("read a run, 16 at a time", endpoints, { ...size, connections: 16 })),
  ];
}

async function createRow(url: string): Promise<string> {
  const response = await fetch(`${url}/floor`, { method: "POST", body: RUN_BODY });
  return ((await response.json()) as { run_id: string }).run_id;
}

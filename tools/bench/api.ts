import { API_KEY } from "./platform.ts";

export const AUTHORIZED = { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" };

/** Body of the request that creates a run. The run is never executed. */
export const RUN_BODY = JSON.stringify({
  prompt: "Read the release notes and list what changes for the people who run this.",
  title: "Read the release notes",
});

/** Sends a REST request with the owner's key. Throws an Error with the response unless the request succeeds. */
export async function api<T>(url: string, path: string, init: { method?: string; body?: string } = {}): Promise<T> {
  const response = await fetch(`${url}/api/v1${path}`, { ...init, headers: AUTHORIZED });
  if (!response.ok) throw new Error(`${init.method ?? "GET"} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export const createRun = async (url: string): Promise<string> =>
  (await api<{ run_id: string }>(url, "/agent/runs", { method: "POST", body: RUN_BODY })).run_id;

/** Creates a worker key of the owner's team. */
export async function createWorkerKey(url: string): Promise<string> {
  const { teams } = await api<{ teams: { uid: string }[] }>(url, "/team");
  const key = await api<{ api_key: string }>(url, `/team/${teams[0]!.uid}/keys`, {
    method: "POST",
    body: JSON.stringify({ name: "bench", kind: "worker" }),
  });
  return key.api_key;
}

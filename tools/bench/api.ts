import { API_KEY } from "./platform.ts";

export const AUTHORIZED = { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" };

/** Body of the request that creates a run. The run is never executed. */
export const RUN_BODY = JSON.stringify({
  prompt: "Read the release notes and list what changes for the people who run this.",
  title: "Read the release notes",
});

type Init = { readonly method?: string; readonly body?: string; readonly apiKey?: string };

/**
 * Sends a REST request, by default with the owner's key. Throws an Error with the response unless the request succeeds.
 */
export async function api<T>(url: string, path: string, { apiKey = API_KEY, ...init }: Init = {}): Promise<T> {
  const headers = { ...AUTHORIZED, authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${url}/api/v1${path}`, { ...init, headers });
  if (!response.ok) throw new Error(`${init.method ?? "GET"} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export const createRun = async (url: string, apiKey?: string): Promise<string> =>
  (await api<{ run_id: string }>(url, "/agent/runs", { method: "POST", body: RUN_BODY, ...(apiKey && { apiKey }) }))
    .run_id;

/** Creates a worker key of the first team of the key's owner. */
export async function createWorkerKey(url: string, apiKey?: string): Promise<string> {
  const as = apiKey === undefined ? {} : { apiKey };
  const { teams } = await api<{ teams: { uid: string }[] }>(url, "/team", as);
  const key = await api<{ api_key: string }>(url, `/team/${teams[0]!.uid}/keys`, {
    method: "POST",
    body: JSON.stringify({ name: "bench", kind: "worker" }),
    ...as,
  });
  return key.api_key;
}

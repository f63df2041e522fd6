import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { masterKeyId } from "@millwright/vault";
import { Cluster, SERVICES } from "@millwright/test-platform";
import { Client as Database } from "pg";
import { millwrightAdmin } from "./support/admin.ts";
import { connect, type Client } from "./support/client.ts";
import { SLOW_MS } from "./support/deployment.ts";
import { script, startRun, succeeded } from "./support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "./support/resources.ts";

let cluster: Cluster;
let api: Client;
let team: string;
/** Clients of each gateway, without the load balancer. */
let gateways: readonly Client[];
beforeAll(async () => {
  cluster = await Cluster.start({ workers: 1 });
  api = await connect(cluster);
  team = await teamOf(api);
  gateways = await Promise.all(
    cluster.gatewayUrls().map((url) => connect({ url, output: () => cluster.member("gateway-0").output() })),
  );
});
afterAll(() => cluster?.remove());

/** Returns the tables of all services with a record that a key has encrypted. */
async function tablesWith(key: string): Promise<string[]> {
  const found = await Promise.all(
    SERVICES.map(async (service) => {
      const database = new Database({ connectionString: cluster.databaseUrl(service) });
      await database.connect();
      try {
        const { rows } = await database.query<{ name: string }>(
          `SELECT format('%I.%I', schemaname, tablename) AS name
             FROM pg_tables
            WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
        );
        const sealed = `%v1.${masterKeyId(Buffer.from(key, "base64"))}.%`;
        const names: string[] = [];
        for (const { name } of rows) {
          const { rowCount } = await database.query(`SELECT FROM ${name} AS t WHERE t::text LIKE $1 LIMIT 1`, [sealed]);
          if (rowCount! > 0) names.push(`${service} ${name}`);
        }
        return names;
      } finally {
        await database.end();
      }
    }),
  );
  return found.flat().toSorted();
}

test(
  "a rotation of the master key leaves every secret readable at every replica, and none with the old key",
  async () => {
    const [OLD, NEW] = [cluster.masterKey, randomBytes(32).toString("base64")];
    await api.put(`/team/${team}/secrets/TOKEN`, { value: "of the team" });
    const environment = await api.post("/agent/environments", { config: { name: "e", secrets: [{ name: "TOKEN" }] } });
    const startWithSecret = () =>
      startRun(api, script('shell: test "$TOKEN" = "of the team"'), { config: { environment_id: environment.uid } });
    const factory = await aFactory(api, definitionFiles(script("say: hello")));
    const hook = await api.post(`/factory/${factory}/webhooks`, { name: "builds" });
    const steps = ["write: {path: a.txt, content: kept}", "artifact: a.txt"];
    const { artifacts } = await succeeded(api, await startRun(api, script(...steps)));
    await succeeded(api, await startWithSecret());
    const page = await api.get("/agent/runs?limit=1");
    const artifact = await api.call("GET", `/agent/artifacts/${artifacts[0].data.artifact_uid}/download`);
    const link = new URL(artifact.headers.get("location")!);

    /** Creates a key of the API. Its response is encrypted, and returned again to the same Idempotency-Key. */
    const createKey = async (gateway: Client, key: string): Promise<string> =>
      (await gateway.post(`/team/${team}/keys`, { name: key }, { headers: { "idempotency-key": key } })).api_key;
    const created = new Map<string, string>();
    /** Checks at each replica what was encrypted so far, by whichever key and replica. */
    const checkSecrets = async (): Promise<void> => {
      for (const gateway of gateways) {
        const key = randomUUID();
        created.set(key, await createKey(gateway, key));
      }
      for (const gateway of gateways)
        for (const [key, response] of created) expect(await createKey(gateway, key)).toBe(response);
      const { pathname } = new URL(hook.ingress_url);
      for (const ingress of cluster.ingressUrls()) {
        const headers = { authorization: `Bearer ${hook.secret}` };
        const delivery = await fetch(ingress + pathname, {
          method: "POST",
          headers,
          body: `{"build":"${randomUUID()}"}`,
        });
        expect(delivery.status).toBe(202);
      }
    };
    /** Checks at each replica what was signed with the old key. */
    const checkSignatures = async (): Promise<void> => {
      const nextPage = `/agent/runs?limit=1&cursor=${encodeURIComponent(page.page_info.next_cursor)}`;
      for (const gateway of gateways) {
        await gateway.get(nextPage);
        expect((await fetch(gateway.url + link.pathname + link.search)).status).toBe(200);
      }
    };
    const check = async (): Promise<void> => {
      await checkSecrets();
      await checkSignatures();
    };
    /** Changes the keys of all services while a run uses the secret. */
    const changeKeys = async (keys: Readonly<Record<string, string>>, checkBetween = check): Promise<void> => {
      const run = await startWithSecret();
      await cluster.reconfigure(keys, checkBetween);
      await succeeded(api, run);
    };
    await check();
    const sealed = await tablesWith(OLD);
    expect(sealed).toEqual(
      expect.arrayContaining([
        "gateway public.idempotency_keys",
        "gateway public.managed_secrets",
        "orchestrator public.worker_sessions",
        "webhook-ingress public.webhooks",
      ]),
    );

    await changeKeys({ MASTER_KEY: OLD, MASTER_KEY_SECONDARY: NEW });
    await changeKeys({ MASTER_KEY: NEW, MASTER_KEY_SECONDARY: OLD });
    const databases = SERVICES.map((service): [string, string] => [
      `${service.toUpperCase().replaceAll("-", "_")}_DATABASE_URL`,
      cluster.databaseUrl(service),
    ]);
    const rotated = await millwrightAdmin(["rotate-master-key"], {
      ...Object.fromEntries(databases),
      MASTER_KEY: NEW,
      MASTER_KEY_SECONDARY: OLD,
    });
    expect(rotated).toMatchObject({ code: 0, output: expect.stringContaining("is retired") });
    await check();
    expect(await tablesWith(OLD)).toEqual([]);

    await changeKeys({ MASTER_KEY_SECONDARY: "" }, checkSecrets);
    await succeeded(api, await startWithSecret());
    expect([await tablesWith(OLD), await tablesWith(NEW)]).toEqual([[], sealed]);
    expect((await fetch(link)).status).toBe(403); // it was signed with the old key
    await expect(cluster.reconfigure({ MASTER_KEY: OLD, MASTER_KEY_SECONDARY: NEW }, check)).rejects.toThrow(
      "was retired by a rotation",
    );
  },
  2 * SLOW_MS,
);

import { AGENT_PROGRAMS, eventually, type AgentProgram, type FakeHarness, type ModelServer } from "@millwright/testing";
import { bareRepository, type Deployment, Program } from "@millwright/test-platform";
import { connect, type Client } from "./client.ts";
import { startPlatform } from "./deployment.ts";
import { eventsOf, RUN_TIMEOUT_MS } from "./runs.ts";
import { teamOf } from "./resources.ts";

/** The API key of the team for each provider. No agent may see it. */
export const KEY = "canary-key-of-a-provider";

/** Returns the texts of the agent in a run. */
export const messagesOf = async (api: Client, runId: string): Promise<string[]> =>
  (await eventsOf(api, runId))
    .filter(({ kind, payload }) => kind === "message" && payload.role === "assistant")
    .map(({ payload }) => payload.text);

/**
 * A platform whose runs use external agent programs, with a repository `acme/shop` that contains `a.txt`. The test
 * starts and stops its workers.
 */
export class HarnessPlatform {
  readonly platform: Deployment;
  readonly api: Client;
  /** The bare repository of the runs. */
  readonly repository: string;
  readonly #environment: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #workers: Program[] = [];

  private constructor(
    platform: Deployment,
    api: Client,
    {
      repository,
      environment,
      env,
    }: { repository: string; environment: string; env: Readonly<Record<string, string>> },
  ) {
    this.platform = platform;
    this.api = api;
    this.repository = repository;
    this.#environment = environment;
    this.#env = env;
  }

  /** @param programs the path of each program's executable */
  static async start(models: ModelServer, programs: Partial<Record<FakeHarness, string>>): Promise<HarnessPlatform> {
    const platform = await startPlatform({ workers: 0, timeScale: 3 });
    try {
      const api = await connect(platform);
      const team = await teamOf(api);
      for (const { provider, path } of Object.values(AGENT_PROGRAMS)) {
        const name = provider.toUpperCase().replace("-", "_");
        await api.put(`/team/${team}/secrets/${name}_API_KEY`, { value: KEY });
        await api.put(`/team/${team}/secrets/${name}_BASE_URL`, { value: models.url + path });
      }
      const repository = bareRepository(platform.path("repositories"), "acme", "shop", { "a.txt": "one\n" });
      await api.post(`/team/${team}/code-hosts`, { name: "local", kind: "local", root: platform.path("repositories") });
      const { uid: environment } = await api.post("/agent/environments", {
        config: { name: "shop", github_repos: [{ owner: "acme", repo: "shop" }] },
      });
      const { api_key: key } = await api.post(`/team/${team}/keys`, { name: "workers", kind: "worker" });
      const offered = Object.entries(programs).map(([type, file]) => [
        `MILLWRIGHT_HARNESS_${type.toUpperCase()}`,
        file,
      ]);
      return new HarnessPlatform(platform, api, {
        repository,
        environment,
        env: {
          MILLWRIGHT_URL: platform.url,
          MILLWRIGHT_WORKER_KEY: key,
          MILLWRIGHT_SANDBOX: "bwrap",
          MILLWRIGHT_ALLOWED_INTERNAL_HOSTS: "127.0.0.0/8",
          ...Object.fromEntries(offered),
        },
      });
    } catch (error) {
      await platform.remove();
      throw error;
    }
  }

  startWorker(name: string): Program {
    const env = {
      ...this.#env,
      MILLWRIGHT_WORKER_ID: name,
      MILLWRIGHT_WORKER_DIR: this.platform.path(`worker-${name}`),
      MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: this.platform.path("repositories"),
    };
    const worker = new Program("worker/src/main.ts", { log: this.platform.path(`worker-${name}.log`), env });
    this.#workers.push(worker);
    return worker;
  }

  /** Resolves when the worker is connected. */
  async hasWorker(name: string): Promise<void> {
    await eventually(
      async () =>
        (await this.api.get("/agent/connected-self-hosted-workers")).workers.some(
          ({ worker_host: host }: any) => host === name,
        ),
      { timeoutMs: RUN_TIMEOUT_MS },
    );
  }

  /** Starts a run in the repository and returns its id. `more` contains further fields of the request. */
  async startRun({ type, modelId, provider }: AgentProgram, prompt: string, more: object = {}): Promise<string> {
    const harness = { type, model_id: type === "opencode" ? `${provider}/${modelId}` : modelId };
    return (
      await this.api.post("/agent/runs", { prompt, config: { harness, environment_id: this.#environment }, ...more })
    ).run_id;
  }

  async remove(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.kill()));
    await this.platform.remove();
  }
}

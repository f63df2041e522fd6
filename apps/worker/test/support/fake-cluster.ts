import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Thing = {
  metadata: {
    name: string;
    uid?: string;
    labels?: Record<string, string>;
    ownerReferences?: { uid: string }[];
    [key: string]: unknown;
  };
  spec?: any;
  status?: any;
  stringData?: Record<string, string>;
};
type Kind = "jobs" | "pods" | "secrets";
type Fault = {
  readonly match: RegExp;
  readonly status: number;
  readonly when: "before" | "after";
  readonly message: string;
};

const NAMESPACE = "runs";
const ROUTE = new RegExp(`^/(?:api/v1|apis/batch/v1)/namespaces/${NAMESPACE}/(jobs|pods|secrets)(?:/([^/?]+))?$`);

/**
 * The part of the cluster API that the backend uses, over real HTTP. Pods are created with their Jobs; the test changes
 * their status.
 */
export class FakeCluster {
  url = "";
  readonly jobs = new Map<string, Thing>();
  readonly pods = new Map<string, Thing>();
  readonly secrets = new Map<string, Thing>();
  /** `verb resource` of all requests, and the bodies of objects to be created. */
  readonly asked: string[] = [];
  readonly created: Thing[] = [];
  readonly deletions: unknown[] = [];
  /** Whether watches send events, and the page size of lists. */
  isWatchAlive = true;
  pageSize = 500;
  #faults: Fault[] = [];
  readonly #watches = new Set<ServerResponse>();
  #server: Server | undefined;
  #uids = 0;

  async start(): Promise<this> {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    await new Promise<void>((resolve) => this.#server?.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  kubeconfig(): string {
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [{ name: "test", cluster: { server: this.url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "test", user: { token: "cluster-token" } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: NAMESPACE } }],
    });
  }

  /**
   * Makes the next request fail whose `VERB resource` matches: before it has any effect, or after it is complete (its
   * response is lost).
   */
  failNext(
    match: RegExp,
    status: number,
    {
      when = "before",
      times = 1,
      message = "injected",
    }: { when?: "before" | "after"; times?: number; message?: string } = {},
  ): void {
    for (let n = 0; n < times; n++) this.#faults.push({ match, status, when, message });
  }

  /** Sets the status of a Job's pod, as a kubelet would. */
  setPod(job: string, status: object): void {
    const pod = this.pods.get(`${job}-pod`)!;
    pod.status = status;
    this.#emit("MODIFIED", pod);
  }

  /** Ends every open watch with the error for an expired resource version. */
  expireWatches(): void {
    for (const watch of this.#watches) {
      watch.end(`${JSON.stringify({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } })}\n`);
    }
    this.#watches.clear();
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.url);
    const [, kind, name] = (ROUTE.exec(url.pathname) ?? []) as unknown as [
      string,
      Kind | undefined,
      string | undefined,
    ];
    const text = (await request.toArray()).map((chunk: Buffer) => chunk.toString()).join("");
    if (kind === undefined || request.headers.authorization !== "Bearer cluster-token")
      return respond(response, 403, status(403, `No such thing, or not for you: ${request.method} ${url.pathname}`));
    const verb = verbOf(request.method ?? "", name, url);
    this.asked.push(`${verb} ${kind}`);
    const fault = this.#takeFault(`${verb} ${kind}`);
    if (fault?.when === "before") return respond(response, fault.status, status(fault.status, fault.message));
    if (verb === "watch") return this.#watch(response);
    const [code, body] = this.#act(verb, kind, name, url, text);
    if (fault) return respond(response, fault.status, status(fault.status, fault.message));
    respond(response, code, body);
  }

  #act(verb: string, kind: Kind, name: string | undefined, url: URL, text: string): [number, unknown] {
    const things = this[kind];
    switch (verb) {
      case "create": {
        const thing = JSON.parse(text) as Thing;
        this.created.push(thing);
        if (things.has(thing.metadata.name)) return [409, status(409, "already exists")];
        thing.metadata = { ...thing.metadata, uid: `uid-${++this.#uids}`, creationTimestamp: new Date().toISOString() };
        things.set(thing.metadata.name, thing);
        if (kind === "jobs") this.#startPod(thing);
        return [201, thing];
      }
      case "get":
        return things.has(name!) ? [200, things.get(name!)] : [404, status(404, "not found")];
      case "delete": {
        this.deletions.push(
          text === ""
            ? Object.fromEntries(url.searchParams)
            : { ...(JSON.parse(text) as object), ...Object.fromEntries(url.searchParams) },
        );
        if (!things.delete(name!)) return [404, status(404, "not found")];
        this.#collect();
        return [200, status(200, "deleted")];
      }
      default: {
        const selected = [...things.values()].filter(({ metadata: { labels = {} } }) =>
          (url.searchParams.get("labelSelector") ?? "")
            .split(",")
            .every((pair) => labels[pair.split("=")[0]!] === pair.split("=")[1]),
        );
        const from = Number(url.searchParams.get("continue") ?? 0);
        const next = from + this.pageSize < selected.length ? { continue: String(from + this.pageSize) } : {};
        return [
          200,
          { kind: "List", apiVersion: "v1", metadata: next, items: selected.slice(from, from + this.pageSize) },
        ];
      }
    }
  }

  #startPod(job: Thing): void {
    const { name, uid = "" } = job.metadata;
    const pod: Thing = {
      metadata: {
        name: `${name}-pod`,
        labels: { ...job.spec.template.metadata.labels, "batch.kubernetes.io/job-name": name },
        ownerReferences: [{ uid }],
        creationTimestamp: new Date().toISOString(),
      },
      spec: job.spec.template.spec,
      status: { phase: "Pending" },
    };
    this.pods.set(pod.metadata.name, pod);
    this.#emit("ADDED", pod);
  }

  /** Deletes objects whose owner was deleted. */
  #collect(): void {
    const alive = new Set([...this.jobs.values()].map(({ metadata }) => metadata.uid));
    for (const things of [this.pods, this.secrets]) {
      for (const [name, { metadata }] of things)
        if (metadata.ownerReferences?.some(({ uid }) => !alive.has(uid))) things.delete(name);
    }
  }

  #watch(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    this.#watches.add(response);
    response.on("close", () => this.#watches.delete(response));
  }

  #emit(type: string, object: Thing): void {
    if (!this.isWatchAlive) return;
    for (const watch of this.#watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  }

  #takeFault(what: string): Fault | undefined {
    const index = this.#faults.findIndex(({ match }) => match.test(what));
    return index < 0 ? undefined : this.#faults.splice(index, 1)[0];
  }
}

const verbOf = (method: string, name: string | undefined, url: URL): string => {
  if (method === "POST") return "create";
  if (method === "DELETE") return "delete";
  if (name !== undefined) return "get";
  return url.searchParams.get("watch") === "true" ? "watch" : "list";
};

const status = (code: number, message: string) => ({
  kind: "Status",
  apiVersion: "v1",
  status: code < 400 ? "Success" : "Failure",
  code,
  message,
});

const respond = (response: ServerResponse, code: number, body: unknown): void =>
  void response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));

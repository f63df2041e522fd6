import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Env } from "@millwright/config";
import { loadConfig as loadFactories } from "@millwright/factories/config";
import { loadConfig as loadGateway } from "@millwright/gateway/config";
import { loadConfig as loadMetrics } from "@millwright/metrics/config";
import { loadConfig as loadOrchestrator } from "@millwright/orchestrator/config";
import { loadConfig as loadScheduler } from "@millwright/scheduler/config";
import { loadConfig as loadScoring } from "@millwright/scoring/config";
import { loadConfig as loadWebhookIngress } from "@millwright/webhook-ingress/config";
import { loadConfig as loadWorker } from "@millwright/worker/config";
import { parse } from "yaml";
import { chartReadme, CHART, valuesSchema } from "./chart.ts";
import { isSetByTemplates, SERVICES, variablesOf, WITHOUT_USE } from "./chart-settings.ts";
import { fetchHelm, HELM_MAJORS } from "./helm.ts";
import { routeFor, routesOf } from "./ingress.ts";
import { immutableFieldsOf, upgradeFaults, type ImmutableFields } from "./immutable-fields.ts";
import { helm, render, renderFile, renderText, VALUE_SETS, type Manifest, type ValueSet } from "./render.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Kinds of other projects, for which this repository has no types. */
const WITHOUT_TYPES = new Set(["Certificate", "HTTPRoute", "ServiceMonitor", "PodMonitor"]);

/** Returns why Helm cannot be used here, undefined if it can. */
function missingHelm(): string | undefined {
  try {
    for (const major of HELM_MAJORS) fetchHelm(major);
    return undefined;
  } catch (error) {
    return (error as Error).message.split("\n")[0];
  }
}

const missing = missingHelm();
const isExpected = missing === undefined || process.env["CI"] === "true";
const withHelm = isExpected ? describe : describe.skip;

test("the schema and the README are current (write them with npm run chart)", () => {
  expect(readFileSync(join(CHART, "values.schema.json"), "utf8")).toBe(`${JSON.stringify(valuesSchema(), null, 2)}\n`);
  expect(readFileSync(join(CHART, "README.md"), "utf8")).toBe(chartReadme());
});

test("every value is documented", () => {
  const rows = chartReadme()
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const explained = new Set(rows.filter(([, , , meaning]) => meaning).map(([, name]) => name!.replaceAll("`", "")));
  const names = rows.map(([, name]) => name!.replaceAll("`", ""));
  const isObvious = (name: string): boolean =>
    /\.(?:enabled|size|resources|interval|annotations|repository|tag|digest|key|port|min\w+|max\w+|pod\w+|nodeSelector|tolerations|affinity|priorityClassName|name|volumeMounts|replicas|className|accessMode|collectorPort)$/.test(
      name,
    );
  const parentOf = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf(".")));
  expect(names.filter((name) => !explained.has(name) && !explained.has(parentOf(name)) && !isObvious(name))).toEqual(
    [],
  );
});

withHelm(isExpected ? "the chart" : `the chart (needs Helm: ${missing})`, () => {
  const rendered = {} as Record<ValueSet, Manifest[]>;
  beforeAll(async () => {
    for (const values of VALUE_SETS) rendered[values] = await render(4, values);
  });

  describe.each(VALUE_SETS)("with the values %s", (values) => {
    test.each(HELM_MAJORS)("passes helm lint --strict of Helm %i", async (major) => {
      const output = await helm(major, "lint", "--strict", CHART, "--values", `${CHART}/values/${values}.yaml`);
      expect(output).toContain("0 chart(s) failed");
    });

    test("is rendered equally by both major versions of Helm", async () => {
      expect(await render(3, values)).toEqual(rendered[values]);
    });

    test("renders objects of Kubernetes without missing and without unknown members", async () => {
      const typed = rendered[values].filter(({ kind }) => !WITHOUT_TYPES.has(kind));
      for (const { apiVersion, kind, ...rest } of typed) {
        const models = (await import(`kubernetes-models/${apiVersion}`)) as Record<
          string,
          new (manifest: object) => { validate(): void }
        >;
        new models[kind]!(rest).validate();
      }
      expect(typeErrors(typed)).toBe("");
    });

    test("has each object once", () => {
      const names = rendered[values].map(({ kind, metadata }) => `${kind}/${metadata.name}`);
      expect(names).toEqual([...new Set(names)]);
    });

    test("runs no privileged pod, and none beyond the profile restricted but a worker's", () => {
      const violations = podsOf(rendered[values]).flatMap(({ name, spec }) =>
        restrictedViolations(spec).map((violation) => `${name}: ${violation}`),
      );
      const isException = (violation: string): boolean => /^mw-millwright-worker-/.test(violation);
      expect(violations.filter((violation) => !isException(violation))).toEqual([]);
      const sandboxes = rendered[values].filter(
        ({ kind, metadata, spec }) =>
          kind === "Deployment" && /-worker-/.test(metadata.name) && spec.template.spec.hostUsers === false,
      );
      expect([...new Set(violations.map((violation) => violation.split(":")[0]))]).toEqual(
        sandboxes.map(({ metadata }) => metadata.name),
      );
    });

    test("pins each image, and limits the memory, processor and root file system of each container", () => {
      for (const { name, container } of containersOf(rendered[values])) {
        expect([name, container.image]).toEqual([
          name,
          expect.stringMatching(/^[^:]+(:(?!latest$)[\w.-]+|@sha256:.+)$/),
        ]);
        expect([name, container.resources.limits]).toEqual([
          name,
          expect.objectContaining({ memory: expect.anything(), cpu: expect.anything() }),
        ]);
        expect([name, container.resources.requests]).toEqual([
          name,
          expect.objectContaining({ memory: expect.anything(), cpu: expect.anything() }),
        ]);
        expect([name, container.securityContext.readOnlyRootFilesystem]).toEqual([name, true]);
      }
    });

    test("mounts a cluster token only into workers that create Jobs", () => {
      const mounting = podsOf(rendered[values]).filter(({ spec }) => spec.automountServiceAccountToken !== false);
      const bound = rendered[values].filter(({ kind }) => kind === "RoleBinding").map(({ metadata }) => metadata.name);
      expect(mounting.map(({ name }) => name)).toEqual(bound);
    });

    test("stores no secret: they are references to Secrets of the operator", () => {
      expect(rendered[values].filter(({ kind }) => kind === "Secret")).toEqual([]);
      const names = /PASSWORD|SECRET(?!S$)|_TOKEN$|(?:API|WORKER|MASTER|SERVICE|ACCESS)_KEY$/;
      for (const { data = {} } of rendered[values].filter(({ kind }) => kind === "ConfigMap"))
        expect(Object.keys(data as object).filter((name) => names.test(name))).toEqual([]);
    });

    test("allows each connection that an address in a variable names, and both of its ends agree", () => {
      const policies = rendered[values].filter(({ kind }) => kind === "NetworkPolicy");
      const named = rendered[values]
        .filter(({ kind }) => kind === "Deployment")
        .flatMap(({ metadata }) =>
          environmentOf(rendered[values], metadata.name).flatMap(({ name, value = "" }) =>
            name === "MILLWRIGHT_PUBLIC_URL"
              ? []
              : [...value.matchAll(/\/\/mw-millwright-([a-z-]+?)(-http)?(?::(\d+))?(?=[/,]|$)/g)].map(
                  ([, target, isHttp, port]) => ({
                    from: metadata.labels!["app.kubernetes.io/component"]!,
                    to: target!,
                    port: isHttp ? "8080" : port!,
                  }),
                ),
          ),
        );
      const egress = policies.flatMap((policy) => edgesOf(policy, "egress"));
      const needed = named.map(({ from, to, port }) => `${roleOf(from)} ${to} ${port}`);
      expect(needed.length).toBeGreaterThan(40);
      const allowed = new Set(egress);
      expect(needed.filter((edge) => !allowed.has(edge))).toEqual([]);
      const accepted = new Set(policies.flatMap((policy) => edgesOf(policy, "ingress")));
      const between = egress.filter((edge) => !edge.endsWith(" 8080"));
      expect(between.filter((edge) => !accepted.has(edge))).toEqual([]);
      expect([...accepted].filter((edge) => !allowed.has(edge))).toEqual([]);
    });
  });

  test.each(SERVICES)("allows %s to connect to the RPC ports that it probes at its start", (service) => {
    const main = readFileSync(join(ROOT, "apps", service, "src/main.ts"), "utf8");
    const [, upstreams = ""] = /upstreams: \(config\) => \(\{([^]*?)\n {2}\}\),/.exec(main) ?? [];
    const names = [...upstreams.matchAll(/^ {4}"?([a-z-]+)"?: /gm)].map(([, name]) => name!);
    const allowed = rendered["highly-available"]
      .filter(({ kind }) => kind === "NetworkPolicy")
      .flatMap((policy) => edgesOf(policy, "egress"));
    expect(allowed.filter((edge) => edge.startsWith(`${service} `) && edge.endsWith(" 9090")).toSorted()).toEqual(
      names.map((name) => `${service} ${name} 9090`).toSorted(),
    );
  });

  test.each(SERVICES)("sets each variable of %s, or a value does", (service) => {
    const set = new Set(
      VALUE_SETS.flatMap((values) => namesOf(environmentOf(rendered[values], `mw-millwright-${service}`))),
    );
    expect(reachable(service, ["services", service], set)).toEqual([]);
  });

  test("sets each variable of workers, or a value does", async () => {
    const jobs = await render(4, "highly-available", "--set", "certificateAuthorities.configMap=authorities");
    const set = new Set(
      [...VALUE_SETS.map((values) => rendered[values]), jobs].flatMap((manifests) =>
        ["default", "jobs"].flatMap((name) => namesOf(environmentOf(manifests, `mw-millwright-worker-${name}`))),
      ),
    );
    expect(reachable("worker", ["workerDefaults"], set)).toEqual([]);
  });

  test("sets no variable that the service does not read", () => {
    for (const values of VALUE_SETS)
      for (const service of SERVICES) {
        const known = new Set([
          ...variablesOf(service).map(({ name }) => name),
          "POSTGRES_PASSWORD",
          "NODE_EXTRA_CA_CERTS",
        ]);
        const set = namesOf(environmentOf(rendered[values], `mw-millwright-${service}`));
        expect([service, set.filter((name) => !known.has(name))]).toEqual([service, []]);
      }
  });

  test.each(VALUE_SETS)("starts no service and no worker with a configuration that it refuses: %s", (values) => {
    for (const [name, load] of Object.entries(LOADERS)) {
      // Files of mounted volumes are not on this machine.
      const variables = environmentOf(rendered[values], `mw-millwright-${name}`).filter(
        (one) => !one.name.endsWith("_FILE"),
      );
      if (name === "worker-jobs" && values !== "highly-available") continue;
      const env = Object.fromEntries(
        variables.map((variable) => [variable.name, variable.value ?? secretFor(variable.name)]),
      );
      expect([name, Object.keys(env).length > 3]).toEqual([name, true]);
      expect(() => load(env)).not.toThrow();
    }
  });

  test.each(HELM_MAJORS)("refuses unknown and wrong values with Helm %i", async (major) => {
    for (const [value, message] of [
      ["services.gateway.replica=2", /replica/],
      ["services.gatewey.replicas=2", /gatewey/],
      ["services.scheduler.settings.MILLWRIGHT_RUN_TOKEN_LIMIT=1", /MILLWRIGHT_RUN_TOKEN_LIMIT/],
      ["services.orchestrator.settings.ANTHROPIC_API_KEY=x", /ANTHROPIC_API_KEY/],
      ["tls.mode=on", /tls.*mode/],
      ["workers.default.backend=kubernetes", /restricted/],
      ["publicUrl=", /publicUrl is required/],
      ["keys.existingSecret=", /keys.existingSecret is required/],
      ["postgresql.enabled=false", /database.existingSecret/],
      ["blobs.volume.enabled=false", /blobs.url or blobs.volume/],
    ] as const)
      await expect(renderText(major, "small", "--set", value)).rejects.toThrow(message);
  });

  test.each(["ingress", "gatewayApi"])("serves webhooks only on the host for webhooks: %s", async (kind) => {
    const args = ["--set", "ingress.enabled=false,gatewayApi.enabled=false", "--set", `${kind}.enabled=true`];
    const routes = routesOf(await render(4, "highly-available", ...args));
    const serviceFor = (host: string, path: string): string | undefined => routeFor(routes, host, path)?.service;
    expect(serviceFor("millwright.example.com", "/api/v1/openapi.json")).toBe("mw-millwright-gateway-http");
    expect(serviceFor("millwright.example.com", "/webhooks/w/1")).toBe("mw-millwright-webhook-ingress-http");
    expect(serviceFor("hooks.example.com", "/webhooks/w/1")).toBe("mw-millwright-webhook-ingress-http");
    expect(serviceFor("hooks.example.com", "/api/v1/openapi.json")).toBeUndefined();
    expect(serviceFor("hooks.example.com", "/webhooksother")).toBeUndefined();
  });

  test("protects each Deployment of several replicas from evictions, and spreads it over nodes and zones", async () => {
    const manifests = await render(4, "highly-available");
    const deployments = manifests.filter(({ kind }) => kind === "Deployment");
    const replicated = deployments.filter(({ spec }) => spec.replicas !== 1).map(({ metadata }) => metadata.name);
    expect(replicated).toContain("mw-millwright-worker-default");
    expect(replicated).not.toContain("mw-millwright-worker-jobs");
    const budgets = manifests.filter(({ kind }) => kind === "PodDisruptionBudget");
    expect(budgets.map(({ metadata }) => metadata.name).toSorted()).toEqual(replicated.toSorted());
    for (const { metadata, spec } of [...budgets, ...deployments])
      expect([metadata.name, spec.selector.matchLabels]).toEqual([
        metadata.name,
        expect.objectContaining({ "app.kubernetes.io/component": metadata.name.replace("mw-millwright-", "") }),
      ]);
    for (const { metadata, spec } of deployments) {
      const constraints = spec.template.spec.topologySpreadConstraints as Record<string, any>[];
      expect([metadata.name, constraints.map(({ topologyKey }) => topologyKey)]).toEqual([
        metadata.name,
        ["kubernetes.io/hostname", "topology.kubernetes.io/zone"],
      ]);
      for (const { labelSelector } of constraints) expect(labelSelector).toEqual(spec.selector);
    }
  });

  test("a worker has the id of the values, or that of its release and name", async () => {
    const idOf = async (...args: string[]): Promise<unknown> =>
      (await render(4, "highly-available", ...args)).find(
        ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === "mw-millwright-worker-jobs",
      )!["data"].MILLWRIGHT_WORKER_ID;
    expect(await idOf()).toBe("mw-millwright-jobs");
    expect(await idOf("--set", "workers.jobs.settings.MILLWRIGHT_WORKER_ID=one")).toBe("one");
  });

  test.each(VALUE_SETS)(
    "upgrades a release of 0.1.0 with its values, without a forbidden change: %s",
    async (values) => {
      const fixtures = join(import.meta.dirname, "fixtures/0.1.0");
      const before = JSON.parse(readFileSync(join(fixtures, "immutable-fields.json"), "utf8")) as Record<
        string,
        object
      >;
      const after = immutableFieldsOf(await renderFile(4, join(fixtures, `${values}.yaml`)));
      expect(Object.keys(after).length).toBeGreaterThan(15);
      expect(upgradeFaults(before[values] as ImmutableFields, after)).toEqual([]);
    },
  );

  test.each(VALUE_SETS)("keeps each variable that containers of 0.1.0 read when they restart: %s", async (values) => {
    const fixtures = join(import.meta.dirname, "fixtures/0.1.0");
    const before = JSON.parse(readFileSync(join(fixtures, "config-maps.json"), "utf8")) as Record<ValueSet, object>;
    const after = (await renderFile(4, join(fixtures, `${values}.yaml`))).filter(({ kind }) => kind === "ConfigMap");
    expect(Object.fromEntries(after.map(({ metadata, data }) => [metadata.name, data]))).toMatchObject(before[values]);
  });

  test("unsets the variables that ConfigMaps have for containers of 0.1.0 only", () => {
    const inherited = ["orchestrator", "factories", "webhook-ingress"].flatMap((service) => {
      const { data } = rendered.small.find(
        ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === `mw-millwright-${service}`,
      )!;
      const set = new Set(namesOf(environmentOf(rendered.small, `mw-millwright-${service}`)));
      return Object.keys(data as object)
        .filter((name) => !set.has(name))
        .map((name) => `${service} ${name}`);
    });
    expect(inherited).toEqual([
      "orchestrator SCHEDULER_URL",
      "orchestrator SCORING_URL",
      "orchestrator METRICS_URL",
      "factories METRICS_URL",
      "webhook-ingress METRICS_URL",
    ]);
  });

  test("an upgrade may not change a selector, nor drop a volume", () => {
    const before = { "Deployment/a": { selector: 1 }, "PersistentVolumeClaim/b": {}, "Service/c": {} };
    expect(upgradeFaults(before, { "Deployment/a": { selector: 2 } })).toEqual([
      "Deployment/a has immutable changes",
      "PersistentVolumeClaim/b is removed",
    ]);
  });

  test("every value changes what is rendered", async () => {
    const defaults = parse(readFileSync(join(CHART, "values.yaml"), "utf8")) as object;
    const unused: string[] = [];
    const paths = leavesOf(defaults).filter(([path]) => !/^(?:services|workers)\./.test(path));
    const before = new Map(await Promise.all(CONTEXTS.map(async (set) => [set, await rendering(set)] as const)));
    for (const [path, value] of paths) {
      const change = `${path}=${JSON.stringify(changed(path, value))}`;
      const outputs = [];
      // The sets differ in what they enable; the first in which the value has an effect suffices.
      for (const set of CONTEXTS) {
        outputs.push((await rendering(set, "--set-json", change)) === before.get(set));
        if (outputs.at(-1) === false) break;
      }
      if (outputs.every(Boolean)) unused.push(path);
    }
    expect(unused).toEqual([]);
  });
});

/** A value set with what else is enabled, so that all values have an effect in one of them. */
const CONTEXTS = ["small", "highly-available", "air-gapped"] as const;
const EXTRA: Readonly<Record<ValueSet, string[]>> = {
  small: ["--set", "certificateAuthorities.configMap=authorities"],
  "highly-available": ["--set", "networkPolicy.collectorNetworks={10.1.0.0/16}"],
  "air-gapped": [],
};

const rendering = (set: ValueSet, ...args: string[]): Promise<string> =>
  renderText(4, set, "--skip-schema-validation", ...EXTRA[set], ...args).catch(
    (error: Error) => `fails: ${error.message}`,
  );

/** Returns the leaves of values by path; free objects are leaves. */
function leavesOf(value: object, path: readonly string[] = []): [path: string, value: unknown][] {
  return Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const at = [...path, name];
    const isFree = ["resources", "settings", "secretSettings"].includes(name);
    return typeof member === "object" &&
      !Array.isArray(member) &&
      member !== null &&
      !isFree &&
      Object.keys(member as object).length > 0
      ? leavesOf(member as object, at)
      : [[at.join("."), member]];
  });
}

/** Returns another value of the same form. */
function changed(path: string, value: unknown): unknown {
  const name = path.split(".").at(-1)!;
  if (name === "resources") return { requests: { cpu: "7" }, limits: { memory: "7Gi" } };
  if (name === "settings") return { LOG_LEVEL: "debug" };
  if (name === "secretSettings") return { OTHER: { name: "other", key: "other" } };
  if (name === "volumes" || name === "volumeMounts" || name === "tolerations" || name === "parentRefs")
    return [{ name: "other" }];
  if (name === "publicFrom" || name === "monitoringFrom") return [{ podSelector: {} }];
  if (/[nN]etworks$|outsideExcept/.test(name)) return ["10.99.0.0/16"];
  if (name === "mode") return "secrets";
  if (name === "kind") return path.startsWith("tls.") ? "ClusterIssuer" : "PodMonitor";
  if (name === "publicUrl" || name === "webhookUrl" || name === "url") return "s3://other.example.com";
  if (Array.isArray(value)) return ["other"];
  if (typeof value === "boolean") return !value;
  if (typeof value === "number") return value + 1;
  if (typeof value === "object") return { other: "other" };
  return `other${value as string}`;
}

/** Returns the variables of an app that neither templates nor values can set. */
function reachable(app: string, path: readonly string[], set: ReadonlySet<string>): string[] {
  const schema = path.reduce<any>((at, name) => at.properties[name], valuesSchema());
  const settable = { ...schema.properties.settings.properties, ...schema.properties.secretSettings.properties };
  return variablesOf(app)
    .map(({ name }) => name)
    .filter((name) => !(name in settable) && !(name in WITHOUT_USE) && !(isSetByTemplates(name) && set.has(name)));
}

const LOADERS: Readonly<Record<string, (env: Env) => unknown>> = {
  gateway: loadGateway,
  orchestrator: loadOrchestrator,
  factories: loadFactories,
  scheduler: loadScheduler,
  scoring: loadScoring,
  metrics: loadMetrics,
  "webhook-ingress": loadWebhookIngress,
  "worker-default": loadWorker,
  "worker-jobs": loadWorker,
};

/** Returns a valid value of a variable that is in a Secret. */
function secretFor(name: string): string {
  if (name.endsWith("_URL")) return `${name === "NATS_URL" ? "nats" : "postgres"}://user:word@server/name`;
  return ["MASTER_KEY", "MASTER_KEY_SECONDARY", "SERVICE_KEY"].includes(name)
    ? Buffer.alloc(32, 7).toString("base64")
    : "mw_0123456789abcdefgh";
}

const namesOf = (variables: readonly Variable[]): string[] => variables.map(({ name }) => name);

type Variable = { readonly name: string; readonly value?: string };

/** Returns the variables of a Deployment's own container that are not empty; those of Secrets have no value. */
function environmentOf(manifests: readonly Manifest[], name: string): Variable[] {
  const deployment = manifests.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === name);
  if (!deployment) return [];
  const [container] = deployment["spec"].template.spec.containers;
  const shared = (container.envFrom as { configMapRef: { name: string } }[]).flatMap(({ configMapRef }) => {
    const { data } = manifests.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name,
    ) as unknown as { readonly data: Readonly<Record<string, string>> };
    return Object.entries(data).map(([variable, value]) => ({ name: variable, value }));
  });
  const variables = [...shared, ...(container.env as Variable[])];
  return [...new Map(variables.map((variable) => [variable.name, variable])).values()].filter(
    ({ value }) => value !== "",
  );
}

type Pod = { readonly name: string; readonly spec: any };

const podsOf = (manifests: readonly Manifest[]): Pod[] =>
  manifests.flatMap(({ kind, metadata, spec }) => {
    if (kind === "Pod") return [{ name: metadata.name, spec }];
    return ["Deployment", "StatefulSet", "Job", "DaemonSet"].includes(kind)
      ? [{ name: metadata.name, spec: spec.template.spec }]
      : [];
  });

const containersOf = (manifests: readonly Manifest[]): { name: string; container: any }[] =>
  podsOf(manifests).flatMap(({ name, spec }) =>
    [...(spec.initContainers ?? []), ...spec.containers].map((container: any) => ({
      name: `${name}/${container.name}`,
      container,
    })),
  );

/** Returns what the pod security standard "restricted" refuses. */
function restrictedViolations(spec: any): string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const faults = [
    ...["hostNetwork", "hostPID", "hostIPC"].filter((name) => spec[name]),
    ...(spec.volumes ?? []).filter((volume: any) => volume.hostPath).map(() => "hostPath"),
    ...(spec.securityContext?.runAsNonRoot === true && spec.securityContext.runAsUser > 0 ? [] : ["may run as root"]),
    ...(spec.securityContext?.seccompProfile?.type === "RuntimeDefault" ? [] : ["pod without seccomp profile"]),
  ];
  for (const { securityContext: own, ports = [] } of containers) {
    if (own.privileged) faults.push("privileged");
    if (own.allowPrivilegeEscalation !== false) faults.push("privilege escalation");
    if (own.capabilities?.drop?.[0] !== "ALL" || own.capabilities.add) faults.push("capabilities");
    if (own.runAsUser === 0 || own.runAsNonRoot === false) faults.push("root");
    if (own.seccompProfile && own.seccompProfile.type !== "RuntimeDefault") faults.push("seccomp profile");
    if (own.appArmorProfile && own.appArmorProfile.type !== "RuntimeDefault") faults.push("AppArmor profile");
    if (own.procMount && own.procMount !== "Default") faults.push("unmasked /proc");
    if (ports.some((port: any) => port.hostPort)) faults.push("host port");
  }
  return faults;
}

const roleOf = (component: string): string => (component.startsWith("worker-") ? "worker" : component);
const PORTS: Readonly<Record<string, string>> = { grpc: "9090", ops: "9091" };

/** Returns the edges between components of this release that a policy allows, as "from to port". */
function edgesOf({ spec }: Manifest, direction: "ingress" | "egress"): string[] {
  const labels = spec.podSelector.matchLabels;
  const own = labels["millwright/role"] ?? labels["app.kubernetes.io/component"] ?? "run";
  return (spec[direction] ?? []).flatMap((rule: any) =>
    (rule[direction === "ingress" ? "from" : "to"] ?? []).flatMap(({ podSelector, namespaceSelector }: any) => {
      const peer = podSelector?.matchLabels?.["app.kubernetes.io/component"];
      if (peer === undefined || namespaceSelector) return [];
      return rule.ports
        .filter(({ port }: any) => port !== "http")
        .map(({ port }: any) => {
          const ends = direction === "ingress" ? [peer, own] : [own, peer];
          return `${ends.join(" ")} ${PORTS[port] ?? port}`;
        });
    }),
  );
}

/** Returns the compiler's messages about objects with members that Kubernetes does not have. */
function typeErrors(manifests: readonly Manifest[]): string {
  const directory = mkdtempSync(join(ROOT, "node_modules/.cache/millwright-chart-"));
  try {
    const lines = manifests.map(
      (manifest, index) =>
        `import type { I${manifest.kind} as T${index} } from "kubernetes-models/${manifest.apiVersion}";\n` +
        `export const o${index}: T${index} = ${JSON.stringify(manifest)};`,
    );
    const file = join(directory, "objects.ts");
    writeFileSync(file, lines.join("\n"));
    execFileSync(
      join(ROOT, "node_modules/typescript/bin/tsc"),
      [
        "--ignoreConfig",
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--target",
        "es2024",
        "--types",
        "",
        file,
      ],
      { encoding: "utf8" },
    );
    return "";
  } catch (error) {
    return (error as { stdout?: string }).stdout ?? String(error);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { parse } from "yaml";
import { jobManifest, offerSecret } from "../src/backends/kubernetes/manifests.ts";
import { kubernetesSettings } from "../src/backends/kubernetes/settings.ts";
import { anOrder, deployedOfKind, everyDeployed, OWNER, STARTED_MS } from "./support/kubernetes.ts";

const text = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/**
 * Validates a manifest with types that are generated from the API's schema. Throws an error that lists the violations.
 */
async function validate(manifest: unknown): Promise<void> {
  const { apiVersion, kind } = manifest as { apiVersion: string; kind: string };
  const models = (await import(`kubernetes-models/${apiVersion}`)) as Record<
    string,
    new (data: unknown) => { validate(): void }
  >;
  new models[kind]!(manifest).validate();
}

describe("the manifests", () => {
  const rich = kubernetesSettings({
    MILLWRIGHT_KUBERNETES_IMAGE: "registry.example/worker:1",
    MILLWRIGHT_KUBERNETES_IMAGES: "node:24=registry.example/worker-node24:1",
    MILLWRIGHT_KUBERNETES_SERVICE_ACCOUNT: "runs",
    MILLWRIGHT_KUBERNETES_NODE_SELECTOR: "pool=agents",
    MILLWRIGHT_KUBERNETES_TOLERATIONS: "dedicated=agents:NoSchedule,spot:NoExecute",
    MILLWRIGHT_KUBERNETES_LABELS: "cost-centre=r-and-d",
    MILLWRIGHT_KUBERNETES_IMAGE_PULL_SECRETS: "registry",
    MILLWRIGHT_KUBERNETES_CA_CONFIG_MAP: "authorities/ca.crt",
    MILLWRIGHT_SANDBOX: "none",
    MILLWRIGHT_EGRESS_ALLOW: "registry.npmjs.org",
    MILLWRIGHT_WORKER_KEY: "mww_never",
    SECRET_OF_OURS: "never",
  });
  const order = anOrder({ dockerImage: "node:24", instanceShape: { vcpus: 2, memoryGb: 8 } });

  test.each([
    ["job.yaml", jobManifest(order, OWNER, rich, STARTED_MS)],
    ["secret.yaml", offerSecret(order, OWNER, rich, "uid-1")],
    [
      "plain-job.yaml",
      jobManifest(anOrder(), OWNER, kubernetesSettings({ MILLWRIGHT_KUBERNETES_IMAGE: "worker" }), STARTED_MS),
    ],
  ])("%s is as reviewed, and valid against the API's schema", async (name, manifest) => {
    expect(plain(manifest)).toEqual(parse(text(`./kubernetes/${name}`)));
    await validate(plain(manifest));
  });

  test("of a Job contain no secret", () => {
    const written = JSON.stringify(jobManifest(order, OWNER, rich, STARTED_MS));
    expect([written.includes("mwo_"), written.includes("never")]).toEqual([false, false]);
  });

  test("are validated: one with a wrong type is rejected", async () => {
    const wrong = plain(jobManifest(order, OWNER, rich, STARTED_MS)) as any;
    wrong.spec.backoffLimit = "none";
    await expect(validate(wrong)).rejects.toThrow(/backoffLimit/);
  });

  test.each([
    ["MILLWRIGHT_KUBERNETES_IMAGE", ""],
    ["MILLWRIGHT_KUBERNETES_IMAGES", "node:24"],
    ["MILLWRIGHT_KUBERNETES_IMAGE_PULL_POLICY", "Sometimes"],
    ["MILLWRIGHT_KUBERNETES_NODE_SELECTOR", "pool"],
    ["MILLWRIGHT_KUBERNETES_TOLERATIONS", "a=b:Never"],
    ["MILLWRIGHT_KUBERNETES_USER", "0"],
    ["MILLWRIGHT_KUBERNETES_CA_CONFIG_MAP", "authorities"],
  ])("%s=%s is rejected by name", (name, value) => {
    expect(() => kubernetesSettings({ MILLWRIGHT_KUBERNETES_IMAGE: "x", [name]: value })).toThrow(name);
  });
});

describe("deploy/kubernetes/worker.yaml", () => {
  test.each(everyDeployed().map((manifest) => [manifest.kind as string, manifest]))(
    "%s is valid against the API's schema",
    async (_kind, manifest) => {
      await expect(validate(manifest)).resolves.toBeUndefined();
    },
  );

  test("runs one worker, as non-root with a read-only image", () => {
    const { spec } = deployedOfKind("Deployment");
    expect(spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
    expect(spec.template.spec).toMatchObject({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        },
      ],
    });
  });
});

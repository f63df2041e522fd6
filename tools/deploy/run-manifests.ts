/**
 * Starts what the chart's manifests declare as processes of this machine, and tests it: the same commands, arguments,
 * variables, users, mounts and probes, in a read-only root file system with the files of the image. Pods have network
 * namespaces, Services addresses and names, and NetworkPolicies are enforced. Needs root on Linux, bubblewrap, iproute2,
 * iptables, openssl and nats-server.
 *
 *   npm run test:deploy [-- small|highly-available|air-gapped …]
 *
 * Of each value set: all pods start, the first run of the install page succeeds, `helm test` and `millwright doctor` pass,
 * the main job of the system tests passes, it passes again while each service and each worker is killed once, no connection
 * was refused, and all pods stop gracefully.
 *
 * Not as in a cluster: PostgreSQL is the embedded one, buckets are a local server, pods that need the Kubernetes API are not
 * started, names are in a hosts file, and images are their files without a container runtime.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { SERVICES } from "./chart-settings.ts";
import { imagesOf, isolatedDirectory, runIsolated, writeImages } from "./namespaces.ts";
import { install, LOCAL_VALUES, type Installation } from "./operator.ts";
import { render, VALUE_SETS, type ValueSet } from "./render.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CLI = ["node", "/opt/millwright/apps/cli/dist/main.js"];
const MAIN_JOB = "apps/system-tests/test/journey.test.ts";

const began = performance.now();
const report = (text: string): void =>
  void process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`);

const directory = isolatedDirectory();
const chosen = VALUE_SETS.filter((values) => process.argv.length <= 2 || process.argv.includes(values));
if (directory === undefined)
  process.exitCode = runIsolated(
    import.meta.filename,
    (path) => {
      writeImages(join(path, "images"));
      report("the images' files are written");
    },
    chosen.map((values) => [values]),
  );
else await testValues(chosen[0]!, directory);

async function testValues(values: ValueSet, parent: string): Promise<void> {
  report(`${values}:`);
  const home = join(parent, values);
  mkdirSync(home);
  const manifests = await render(4, values, ...LOCAL_VALUES[values]);
  const installation = await install(home, values, { manifests, images: imagesOf(join(parent, "images")) });
  try {
    await test(installation);
    const failedStops = await installation.stop();
    if (failedStops.length > 0) throw new Error(`did not exit with code 0 in time: ${failedStops.join(", ")}`);
    report("all pods have stopped within their grace period");
  } finally {
    await installation.remove();
  }
}

async function test(installation: Installation): Promise<void> {
  const { cluster, skipped } = installation;
  report(`${cluster.pods.length} pods are started and ready`);
  for (const name of skipped) report(`not started: ${name}`);
  await startFirstRun(installation);
  report("the first run, as the install page starts it, has succeeded");
  await cluster.test();
  report("helm test passes");
  await runDoctor(installation);
  report("millwright doctor passes in a pod of each service");
  execFileSync("mount", ["--bind", cluster.network.hostsFile, "/etc/hosts"]);
  try {
    await runMainJob(installation, "existing");
    report("the main job passes");
    await loseEachProcess(installation);
  } finally {
    execFileSync("umount", ["/etc/hosts"]);
  }
  await cluster.test();
  checkEdges(installation);
}

/** Starts a run with the command line client in a pod of the gateway, and waits for its end. Throws if it fails. */
async function startFirstRun({ cluster, ownerKey }: Installation): Promise<void> {
  const gateway = cluster.podsOf("gateway")[0]!;
  const prompt = "```scripted\n- shell: uname -a\n- say: This is the sandbox of the run.\n```";
  const access = ["--url", "http://127.0.0.1:8080", "--api-key", ownerKey];
  const code = await cluster.execute(gateway, [
    ...CLI,
    "run",
    "create",
    prompt,
    "--model",
    "scripted",
    "--watch",
    ...access,
  ]);
  if (code !== 0) throw new Error(`The first run failed:\n${cluster.output(gateway)}`);
}

/** Runs the preflight checks in one pod of each service. Throws if one fails. */
async function runDoctor({ cluster }: Installation): Promise<void> {
  for (const service of SERVICES) {
    const pod = cluster.podsOf(service)[0]!;
    const code = await cluster.execute(pod, [...CLI, "doctor"]);
    if (code !== 0) throw new Error(`millwright doctor failed in ${pod.name}:\n${cluster.output(pod)}`);
  }
}

/** Runs the system test of the main job against the installation's public URL. */
async function runMainJob(installation: Installation, system: "existing" | "existing-chaos"): Promise<void> {
  const jest = ["--experimental-vm-modules", "--no-warnings", "--conditions=@millwright/source"];
  const child = spawn(process.execPath, [...jest, "node_modules/jest/bin/jest.js", MAIN_JOB], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      MILLWRIGHT_SYSTEM: system,
      MILLWRIGHT_SYSTEM_URL: installation.url,
      NODE_EXTRA_CA_CERTS: installation.authority,
    },
  });
  const output: Buffer[] = [];
  child.stdout.on("data", (data: Buffer) => output.push(data));
  child.stderr.on("data", (data: Buffer) => output.push(data));
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`The main job failed:\n${Buffer.concat(output).toString()}`);
}

/** Kills one process of each service and of the workers, one after the other, while the main job runs. */
async function loseEachProcess(installation: Installation): Promise<void> {
  const { cluster } = installation;
  const victims = [
    ...new Set(cluster.pods.filter(({ network }) => network !== undefined).map(({ component }) => component)),
  ].map((component) => cluster.podsOf(component)[0]!);
  let haveBeenKilled = false;
  const killing = async (): Promise<void> => {
    for (const victim of victims) {
      await cluster.kill(victim);
      await cluster.restart(victim);
    }
    haveBeenKilled = true;
  };
  const working = async (): Promise<number> => {
    for (let jobs = 1; ; jobs++) {
      await runMainJob(installation, "existing-chaos");
      if (haveBeenKilled) return jobs;
    }
  };
  const [jobs] = await Promise.all([working(), killing()]);
  const names = victims.map(({ name }) => name).join(", ");
  report(`the main job passes ${jobs} times while each of ${names} is killed once`);
}

/** Throws if a connection was refused by NetworkPolicies: then they are narrower than the architecture. */
function checkEdges({ cluster }: Installation): void {
  const edges = cluster.edges();
  const refused = edges.filter(({ isAccepted }) => !isAccepted);
  if (refused.length > 0)
    throw new Error(
      `NetworkPolicies refuse ${refused.map(({ from, to, port }) => `${from} → ${to}:${port}`).join(", ")}.`,
    );
  report(`${edges.length} kinds of connections were observed, and NetworkPolicies allow all of them`);
}

import { execFileSync } from "node:child_process";
import { mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { isAllowed, type Endpoint } from "./network-policies.ts";
import type { Manifest } from "./render.ts";

/** An endpoint with the name that reports use. */
export type Host = Endpoint & { readonly component: string };
/** A host outside of the cluster, with its DNS name. */
export type OutsideHost = Host & { readonly hostname: string; readonly port: number };

export type NetworkState = {
  readonly manifests: readonly Manifest[];
  readonly pods: readonly Host[];
  /** Pods that Services send connections to. */
  readonly ready: readonly Host[];
  readonly outside: readonly OutsideHost[];
};

/** Connections of one kind: how many were opened, and whether they were accepted. */
export type Edge = { readonly from: string; readonly to: string; readonly port: string; readonly isAccepted: boolean };

const NODE = "10.244.255.254";
const HOSTS_BYTES = 16_384;
const run = (program: string, args: readonly string[], input?: string): string =>
  execFileSync(program, args, { encoding: "utf8", ...(input !== undefined && { input }) });

/**
 * The cluster network, inside the network and mount namespaces of this process: each pod has a network namespace with an
 * address of its own, Services have addresses that are forwarded to ready pods as kube-proxy does, names are in a hosts
 * file, and NetworkPolicies are enforced.
 */
export class PodNetwork {
  readonly hostsFile: string;
  readonly #hosts: number;
  readonly #services = new Map<string, string>();
  readonly #edges = new Map<string, number>();
  #count = 0;

  /** Needs root, and network and mount namespaces that it may change: `unshare --net --mount`. */
  constructor(hostsFile: string) {
    mkdirSync("/run/netns", { recursive: true });
    run("mount", ["-t", "tmpfs", "tmpfs", "/run/netns"]);
    run(
      "ip",
      ["-batch", "-"],
      `link set lo up\naddr add ${NODE}/32 dev lo\nroute add 10.96.0.0/16 dev lo src ${NODE}\n`,
    );
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    this.hostsFile = hostsFile;
    writeFileSync(hostsFile, " ".repeat(HOSTS_BYTES));
    this.#hosts = openSync(hostsFile, "r+");
  }

  /** Returns a new address of a pod. */
  newAddress(): string {
    this.#count++;
    return `10.244.${this.#count >> 8}.${this.#count & 255}`;
  }

  /** Creates the network namespace of an address, and returns its file. */
  addPod(address: string): string {
    const name = `pod-${address}`;
    const link = `veth${address.split(".").slice(2).join("-")}`;
    run(
      "ip",
      ["-batch", "-"],
      `netns add ${name}
link add ${link} type veth peer name eth0 netns ${name}
link set ${link} up
route add ${address}/32 dev ${link} src ${NODE}
`,
    );
    run(
      "ip",
      ["-netns", name, "-batch", "-"],
      `link set lo up
addr add ${address}/32 dev eth0
link set eth0 up
route add ${NODE} dev eth0
route add default via ${NODE} dev eth0
`,
    );
    return `/run/netns/${name}`;
  }

  removePod(address: string): void {
    run("ip", ["netns", "delete", `pod-${address}`]);
  }

  /** Gives an address to this machine, for a program that runs outside of the pods' namespaces. */
  addHost(address: string): void {
    run("ip", ["address", "add", `${address}/32`, "dev", "lo"]);
  }

  /** Returns the address of a Service that has one of its own. */
  addressOf(service: string): string {
    const known = this.#services.get(service) ?? `10.96.0.${this.#services.size + 1}`;
    this.#services.set(service, known);
    return known;
  }

  /** Replaces names, the targets of Services, and the NetworkPolicies. Open connections stay. */
  update(state: NetworkState): void {
    this.#readCounters();
    this.#writeHosts(state);
    run("iptables-restore", [], [...this.#serviceRules(state), ...rulesOf(state), ""].join("\n"));
  }

  /** Returns which connections were opened between pods, and to hosts outside, since the start. */
  edges(): Edge[] {
    this.#readCounters();
    return [...this.#edges]
      .filter(([, packets]) => packets > 0)
      .map(([key]) => {
        const [from = "", to = "", port = "", target] = key.split(" ");
        return { from, to, port, isAccepted: target === "ACCEPT" };
      });
  }

  #readCounters(): void {
    const rules = run("iptables-save", ["--counters", "--table", "filter"]);
    for (const [, packets, edge, target] of rules.matchAll(/^\[(\d+):.*--comment "([^"]+)".* -j (ACCEPT|REJECT)/gm)) {
      const key = `${edge} ${target}`;
      this.#edges.set(key, (this.#edges.get(key) ?? 0) + Number(packets));
    }
  }

  /** Overwrites the file in place, because containers have mounted it, in one write of constant length. */
  #writeHosts({ manifests, ready, outside }: NetworkState): void {
    const names = manifests
      .filter(({ kind }) => kind === "Service")
      .flatMap((service) => {
        const { name } = service.metadata;
        const addresses = isHeadless(service)
          ? ready.filter((pod) => isSelected(service, pod)).map(({ address }) => address)
          : [this.addressOf(name)];
        return addresses.map((address) => `${address} ${name}`);
      });
    const text = ["127.0.0.1 localhost", ...names, ...outside.map((host) => `${host.address} ${host.hostname}`), ""];
    writeSync(this.#hosts, text.join("\n").padEnd(HOSTS_BYTES, "\n"), 0);
  }

  #serviceRules({ manifests, ready }: NetworkState): string[] {
    const rules = manifests
      .filter((manifest) => manifest.kind === "Service" && !isHeadless(manifest))
      .flatMap((service) => {
        const pods = ready.filter((pod) => isSelected(service, pod));
        return (service["spec"].ports as { port: number; targetPort: string }[]).flatMap(({ port, targetPort }) =>
          pods.map((pod, index) => {
            const to = `--to-destination ${pod.address}:${pod.ports![targetPort]}`;
            const turn = `-m statistic --mode nth --every ${pods.length - index} --packet 0`;
            return `-A SERVICES -d ${this.addressOf(service.metadata.name)} -p tcp --dport ${port} ${turn} -j DNAT ${to}`;
          }),
        );
      });
    return [
      ...["*nat", ":PREROUTING ACCEPT", ":OUTPUT ACCEPT", ":SERVICES -"],
      ...["-A PREROUTING -j SERVICES", "-A OUTPUT -j SERVICES", ...rules, "COMMIT"],
    ];
  }
}

const isHeadless = ({ spec }: Manifest): boolean => spec.clusterIP === "None";

const isSelected = ({ spec }: Manifest, { labels = {} }: Endpoint): boolean =>
  Object.entries(spec.selector as Record<string, string>).every(([name, value]) => labels[name] === value);

/** Returns the rules that enforce the policies: each possible connection has one, whose counter shows its use. */
function rulesOf({ manifests, pods, outside }: NetworkState): string[] {
  const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
  const targets = [
    ...pods.flatMap((pod) => Object.values(pod.ports ?? {}).map((port) => ({ host: pod, port }))),
    ...outside.map((host) => ({ host, port: host.port })),
  ];
  const reject = "REJECT --reject-with tcp-reset";
  const rules = pods.flatMap((from) =>
    targets
      .filter(({ host }) => host !== from)
      .map(
        ({ host, port }) =>
          `-A POLICIES -s ${from.address} -d ${host.address} -p tcp --dport ${port} -m comment ` +
          `--comment "${from.component} ${host.component} ${port}" ` +
          `-j ${isAllowed(policies, from, host, port) ? "ACCEPT" : reject}`,
      ),
  );
  const others = pods.map(
    ({ address, component }) =>
      `-A POLICIES -s ${address} -p tcp -m comment --comment "${component} elsewhere any" -j ${reject}`,
  );
  return [
    ...["*filter", ":INPUT ACCEPT", ":FORWARD ACCEPT", ":OUTPUT ACCEPT", ":POLICIES -"],
    "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    "-A FORWARD -j POLICIES",
    "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    `-A INPUT ! -i lo -j POLICIES`,
    ...rules,
    ...others,
    "COMMIT",
  ];
}

import { BlockList, isIPv4 } from "node:net";
import { RELEASE, type Manifest } from "./render.ts";

type Labels = Readonly<Record<string, string>>;

/** A pod, or a host outside of the cluster, which has no labels. */
export type Endpoint = {
  readonly address: string;
  readonly labels?: Labels;
  readonly namespace?: string;
  /** Ports by name. */
  readonly ports?: Readonly<Record<string, number>>;
};

/**
 * Returns whether the release's NetworkPolicies allow a TCP connection, as the API's documentation defines it. A
 * pod that no policy selects is not restricted. An `ipBlock` does not match a pod: the API leaves this to the network
 * plugin, and the stricter plugins do not.
 */
export function isAllowed(policies: readonly Manifest[], from: Endpoint, to: Endpoint, port: number): boolean {
  return (
    permits(policies, { direction: "Egress", own: from, peer: to, target: to, port }) &&
    permits(policies, { direction: "Ingress", own: to, peer: from, target: to, port })
  );
}

type Question = {
  readonly direction: "Egress" | "Ingress";
  readonly own: Endpoint;
  readonly peer: Endpoint;
  readonly target: Endpoint;
  readonly port: number;
};

function permits(policies: readonly Manifest[], { direction, own, peer, target, port }: Question): boolean {
  const selecting = policies.filter(
    ({ spec }) =>
      own.labels !== undefined &&
      own.namespace === RELEASE.namespace &&
      spec.policyTypes.includes(direction) &&
      selects(spec.podSelector, own.labels),
  );
  if (selecting.length === 0) return true;
  return selecting.some(({ spec }) => {
    const rules = spec[direction.toLowerCase()] as readonly Rule[] | undefined;
    return (rules ?? []).some(({ ports, from, to }) => {
      const peers = direction === "Egress" ? to : from;
      return (
        (!ports?.length || ports.some((one) => matchesPort(one, target, port))) &&
        (!peers?.length || peers.some((one) => matchesPeer(one, peer)))
      );
    });
  });
}

type Selector = { readonly matchLabels?: Labels; readonly matchExpressions?: unknown };
type Peer = {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
};
type Port = { readonly port?: string | number; readonly protocol?: string };
type Rule = { readonly ports?: readonly Port[]; readonly from?: readonly Peer[]; readonly to?: readonly Peer[] };

function selects({ matchLabels = {}, matchExpressions }: Selector, labels: Labels): boolean {
  if (matchExpressions !== undefined) throw new Error("matchExpressions are not evaluated");
  return Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
}

const matchesPort = ({ port, protocol = "TCP" }: Port, target: Endpoint, wanted: number): boolean =>
  protocol === "TCP" &&
  (port === undefined || (typeof port === "number" ? port : (target.ports ?? {})[port]) === wanted);

function matchesPeer({ podSelector, namespaceSelector, ipBlock }: Peer, peer: Endpoint): boolean {
  if (ipBlock)
    return peer.labels === undefined && contains([ipBlock.cidr], peer) && !contains(ipBlock.except ?? [], peer);
  if (peer.labels === undefined || peer.namespace === undefined) return false;
  const isNamespace = namespaceSelector
    ? selects(namespaceSelector, { "kubernetes.io/metadata.name": peer.namespace })
    : peer.namespace === RELEASE.namespace;
  return isNamespace && selects(podSelector ?? {}, peer.labels);
}

function contains(networks: readonly string[], { address }: Endpoint): boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [base = "", bits = ""] = network.split("/");
    list.addSubnet(base, Number(bits), isIPv4(base) ? "ipv4" : "ipv6");
  }
  return list.check(address);
}

import { expect, test } from "@jest/globals";
import { isAllowed, type Endpoint } from "./network-policies.ts";
import { RELEASE, type Manifest } from "./render.ts";

const pod = (app: string, namespace = RELEASE.namespace): Endpoint => ({
  address: "10.244.0.1",
  labels: { app },
  namespace,
  ports: { http: 8080 },
});
const policy = (app: string | undefined, spec: object): Manifest => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "one" },
  spec: { podSelector: app === undefined ? {} : { matchLabels: { app } }, ...spec },
});
const client = { podSelector: { matchLabels: { app: "client" } } };

test("allows everything between pods that no policy selects", () => {
  expect(isAllowed([], pod("client"), pod("server"), 1)).toBe(true);
  expect(isAllowed([policy("other", { policyTypes: ["Ingress"] })], pod("client"), pod("server"), 1)).toBe(true);
});

test("denies what no rule of the selecting policies allows, in both directions", () => {
  expect(isAllowed([policy("server", { policyTypes: ["Ingress"] })], pod("client"), pod("server"), 1)).toBe(false);
  expect(isAllowed([policy("client", { policyTypes: ["Egress"] })], pod("client"), pod("server"), 1)).toBe(false);
  expect(isAllowed([policy(undefined, { policyTypes: ["Egress"] })], pod("client"), pod("server"), 1)).toBe(false);
});

test("compares the port, by number and by the target's name, and its protocol", () => {
  const of = (ports: object[]): Manifest[] => [policy("server", { policyTypes: ["Ingress"], ingress: [{ ports }] })];
  const isOpen = (ports: object[], port: number): boolean => isAllowed(of(ports), pod("client"), pod("server"), port);
  expect(isOpen([{ port: "http", protocol: "TCP" }], 8080)).toBe(true);
  expect(isOpen([{ port: "http" }], 8081)).toBe(false);
  expect(isOpen([{ port: 8081 }], 8081)).toBe(true);
  expect(isOpen([{ port: 8081, protocol: "UDP" }], 8081)).toBe(false);
});

test("compares the peer's labels and namespace", () => {
  const of = (...from: object[]): Manifest[] => [policy("server", { policyTypes: ["Ingress"], ingress: [{ from }] })];
  expect(isAllowed(of(client), pod("client"), pod("server"), 1)).toBe(true);
  expect(isAllowed(of(client), pod("other"), pod("server"), 1)).toBe(false);
  expect(isAllowed(of(client), pod("client", "foreign"), pod("server"), 1)).toBe(false);
  const foreign = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "foreign" } } };
  expect(isAllowed(of(foreign), pod("client", "foreign"), pod("server"), 1)).toBe(true);
  expect(isAllowed(of(foreign), pod("client"), pod("server"), 1)).toBe(false);
});

test("compares networks with addresses outside of the cluster only", () => {
  const of = (ipBlock: object): Manifest[] => [
    policy("client", { policyTypes: ["Egress"], egress: [{ to: [{ ipBlock }] }] }),
  ];
  const outside = { address: "198.51.100.7" };
  expect(isAllowed(of({ cidr: "198.51.100.0/24" }), pod("client"), outside, 443)).toBe(true);
  expect(isAllowed(of({ cidr: "0.0.0.0/0", except: ["198.51.100.0/24"] }), pod("client"), outside, 443)).toBe(false);
  expect(isAllowed(of({ cidr: "0.0.0.0/0" }), pod("client"), pod("server"), 443)).toBe(false);
});

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { CHART } from "./chart.ts";
import { fetchHelm, type HelmMajor } from "./helm.ts";

/** The value sets that the chart has. */
export const VALUE_SETS = ["small", "highly-available", "air-gapped"] as const;
export type ValueSet = (typeof VALUE_SETS)[number];

/** A rendered Kubernetes object. */
export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  // oxlint-disable-next-line typescript/no-explicit-any -- objects of many kinds, whose types the tests check
  readonly [key: string]: any;
};

/** The release's name and namespace in renderings. */
export const RELEASE = { name: "mw", namespace: "millwright" };

/** Runs Helm and returns its standard output. Rejects with its standard error. */
export async function helm(major: HelmMajor, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(fetchHelm(major).helm, args, { maxBuffer: 64 * 1024 ** 2 });
  return stdout;
}

/** Returns the text of a chart's manifests with a file of values and further arguments of Helm. */
const template = (major: HelmMajor, chart: string, file: string, ...args: string[]): Promise<string> =>
  helm(major, "template", RELEASE.name, chart, "--namespace", RELEASE.namespace, "--values", file, ...args);

/** Returns the text of the chart's manifests with a value set and further arguments of Helm. */
export const renderText = (major: HelmMajor, values: ValueSet, ...args: string[]): Promise<string> =>
  template(major, CHART, `${CHART}/values/${values}.yaml`, ...args);

/** Returns the chart's manifests with a value set and further arguments of Helm. */
export const render = (major: HelmMajor, values: ValueSet, ...args: string[]): Promise<Manifest[]> =>
  renderFile(major, `${CHART}/values/${values}.yaml`, { args });

/** Returns the manifests of a chart, by default this one, with a file of values. */
export async function renderFile(
  major: HelmMajor,
  file: string,
  { chart = CHART, args = [] }: { readonly chart?: string; readonly args?: readonly string[] } = {},
): Promise<Manifest[]> {
  return parseAllDocuments(await template(major, chart, file, ...args))
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

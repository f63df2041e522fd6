/**
 * Rejects imports that violate the architecture of this repository. Prints one line per violation; exit code 1 if there
 * is any.
 *
 *   node tools/checks/boundaries.mjs [root]
 *
 * Layers (tags in package.json): app → runtime, base · runtime → runtime, base · base → base · test → runtime, base.
 * Apps never import apps, except that standalone and admin may import each app's /compose and /config, and system-tests
 * standalone. Only tests import layer:test. Cycles of packages and of files are rejected, of type imports too. Relative
 * imports stay within their package. Folders inside an app: see FOLDERS. Modules inside an app: see MODULES and
 * CLOSED_MODULES.
 */
import { readFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { packageOf, readPackages } from "../workspace/packages.mjs";

const LAYERS = {
  app: ["runtime", "base"],
  runtime: ["runtime", "base"],
  base: ["base"],
  test: ["runtime", "base"],
};

/** `@bufbuild/protobuf` itself is allowed: its JSON types are used for open objects everywhere. */
const PROTO = /^@millwright\/contracts|^@bufbuild\/protobuf\/|^@connectrpc\//;
const PRISMA = /^@prisma\/|\/gen\/prisma\b|prisma-client/;
const WORLD = /^(?:pg|koa|undici|nats|pino)(?:\/|$)|^@koa\//;
/** Node modules that domain rules may use: calculation without side effects. */
const PURE_NODE = new Set([
  "node:path",
  "node:path/posix",
  "node:crypto",
  "node:util",
  "node:buffer",
  "node:url",
  "node:assert",
]);
/** Base packages that are not pure rules. */
const NOT_FOR_RULES = /^@millwright\/(?:contracts|clock|config|vault)$/;

/**
 * Imports that a folder of an app must not have: a test of the specifier, or of the sibling folder that a relative
 * import resolves to. Test files may import everything of their own app.
 */
const FOLDERS = {
  domain: {
    specifier: (name, layerOf) =>
      PROTO.test(name) ||
      PRISMA.test(name) ||
      WORLD.test(name) ||
      NOT_FOR_RULES.test(name) ||
      layerOf(name) === "runtime" ||
      (name.startsWith("node:") && !PURE_NODE.has(name)),
    onlyFolders: ["domain"],
    why: "domain/ is pure: other domain files and pure base libraries only",
  },
  usecases: {
    specifier: (name) => PROTO.test(name) || PRISMA.test(name) || WORLD.test(name) || name === "@millwright/rpc",
    notFolders: ["rpc", "routes", "gen"],
    why: "usecases/ see domain, store and clients; never wire formats",
  },
  store: {
    specifier: () => false,
    notFolders: ["usecases", "rpc", "routes", "clients"],
    why: "store/ sees domain types and the database only",
  },
  clients: {
    specifier: (name) => PRISMA.test(name),
    notFolders: ["rpc", "routes", "store"],
    why: "clients/ see generated clients, and the types of what they stand for",
  },
  rpc: {
    specifier: (name) => PRISMA.test(name),
    notFolders: ["gen"],
    why: "rpc/ translates; SQL and Prisma live in store/",
  },
  routes: {
    specifier: (name) => PRISMA.test(name),
    notFolders: ["gen"],
    why: "routes/ translate; SQL and Prisma live in store/",
  },
  events: {
    specifier: (name) => PRISMA.test(name),
    notFolders: ["gen"],
    why: "events/ translate; SQL and Prisma live in store/",
  },
};

/**
 * Modules of an app that import nothing else of it except its generated code, and of which the rest of the app imports
 * index.ts only, so that each can become a service by moving its folder. The rules of FOLDERS apply inside a module.
 */
const CLOSED_MODULES = { "apps/gateway": ["identity"] };

/**
 * Modules of an app, each with the modules that it may import; files outside them import every module. The lists name
 * only modules above, so the modules cannot depend on each other in a circle.
 */
const MODULES = {
  "apps/orchestrator": {
    storage: [],
    catalog: ["storage"],
    runs: ["storage", "catalog"],
    budgets: ["storage", "catalog", "runs"],
    leases: ["storage", "catalog", "runs", "budgets"],
    conversations: ["storage", "runs"],
    artifacts: ["storage", "catalog", "runs", "budgets", "leases", "conversations"],
    evidence: ["catalog", "runs", "conversations"],
    facts: ["catalog", "runs"],
  },
  "apps/worker": {
    time: [],
    egress: [],
    protocol: ["time"],
    sandbox: ["egress"],
    git: ["egress", "sandbox"],
    state: ["time", "sandbox", "git"],
    context: ["egress", "sandbox", "state"],
    spool: ["protocol", "sandbox", "context"],
    model: ["time", "protocol", "context", "spool"],
    tools: ["sandbox", "git", "context", "model"],
    mcp: ["egress", "sandbox", "context", "model", "tools"],
    conversation: ["sandbox", "context", "model"],
    workspace: ["sandbox", "git", "state", "context", "model", "tools", "conversation"],
    adapters: ["time", "egress", "sandbox", "context", "spool", "model", "tools", "conversation", "workspace"],
    harness: [
      "egress",
      "sandbox",
      "git",
      "state",
      "context",
      "model",
      "tools",
      "mcp",
      "conversation",
      "workspace",
      "adapters",
    ],
    leases: ["time", "protocol", "model"],
    executions: ["time", "egress", "protocol", "sandbox", "git", "state", "context", "spool", "model", "mcp", "leases"],
    backends: ["time", "protocol", "state", "leases"],
  },
};

/** Apps that import /compose and /config of other apps: standalone runs all, admin accesses their databases. */
const COMPOSERS = ["apps/standalone", "apps/admin"];

/** Packages that are provided by another declared package. */
const PROVIDED = { "@jest/globals": "jest" };

const root = resolve(process.argv[2] ?? join(import.meta.dirname, "../.."));
const rootManifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const packages = readPackages(root);
const byName = new Map(packages.map((one) => [one.name, one]));
/** @type {string[]} */
const breaches = [];
const report = (path, text) => breaches.push(`${path}: ${text}`);

const layerOfPackage = (one) => {
  const tags = (one.manifest.nx?.tags ?? []).filter((tag) => tag.startsWith("layer:"));
  return tags.length === 1 ? tags[0].slice("layer:".length) : undefined;
};
const layerOf = (name) => {
  const found = byName.get(packageOf(name));
  return found && layerOfPackage(found);
};

for (const one of packages) {
  checkManifest(one);
  for (const file of one.files) {
    for (const specifier of file.imports) checkImport(one, file, specifier);
    checkEnvironment(one, file);
  }
}
checkPackageCycles();
checkFileCycles();

for (const breach of breaches.sort()) console.error(breach);
if (breaches.length > 0) process.exitCode = 1;

function checkManifest(one) {
  const layer = layerOfPackage(one);
  const isApp = one.dir.startsWith("apps/");
  if (layer === undefined || !(layer in LAYERS)) report(`${one.dir}/package.json`, "needs exactly one known layer tag");
  else if (isApp !== (layer === "app"))
    report(`${one.dir}/package.json`, `layer:${layer} does not belong in ${isApp ? "apps/" : "libs/"}`);
  for (const name of Object.keys({ ...one.manifest.dependencies, ...one.manifest.devDependencies })) {
    if (!byName.has(name)) report(`${one.dir}/package.json`, `third-party ${name} is declared in the root only`);
  }
}

function checkImport(one, file, specifier) {
  if (specifier.startsWith(".")) checkRelative(one, file, specifier);
  else if (byName.has(packageOf(specifier))) checkInternal(one, file, specifier);
  else if (!specifier.startsWith("node:")) checkThirdParty(one, file, packageOf(specifier));
  if (!file.isTest) {
    checkFolder(one, file, specifier);
    checkClosedModule(one, file, specifier);
    checkModule(one, file, specifier);
  }
}

function checkInternal(one, file, specifier) {
  const name = packageOf(specifier);
  const [from, to] = [layerOfPackage(one), layerOf(name)];
  if (name === one.name) {
    if (!file.isTest) report(file.path, `imports its own package by name (${specifier})`);
    return;
  }
  if (to === "app") {
    const isComposition = COMPOSERS.includes(one.dir) && [`${name}/compose`, `${name}/config`].includes(specifier);
    const isJourney = one.dir === "apps/system-tests" && name === "@millwright/standalone";
    if (!isComposition && !isJourney) report(file.path, `imports the app ${specifier}`);
  } else if (to === "test") {
    if (!file.isTest && from !== "test") report(file.path, `imports ${name}, which is for tests`);
  } else if (from !== undefined && to !== undefined && !(LAYERS[from] ?? []).includes(to)) {
    report(file.path, `layer:${from} must not import layer:${to} (${specifier})`);
  }
}

function checkThirdParty(one, file, name) {
  const declared = PROVIDED[name] ?? name;
  if (declared in (rootManifest.dependencies ?? {})) return;
  if (!(declared in (rootManifest.devDependencies ?? {})))
    report(file.path, `imports ${name}, which the root does not declare`);
  else if (!file.isTest && layerOfPackage(one) !== "test")
    report(file.path, `imports ${name}, a development dependency, outside tests`);
}

function checkRelative(one, file, specifier) {
  const target = resolve(root, dirname(file.path), specifier);
  if (!target.startsWith(resolve(root, one.dir) + sep)) report(file.path, `leaves its package (${specifier})`);
  else if (!specifier.endsWith(".ts") && !specifier.endsWith(".json") && !specifier.endsWith(".mjs"))
    report(file.path, `relative imports name the file with its ending (${specifier})`);
  const isCompose = target === resolve(root, one.dir, "src/compose.ts");
  const mayCompose = file.isTest || /\/main\.ts$/.test(file.path) || one.dir === "apps/standalone";
  if (isCompose && !mayCompose) report(file.path, "compose.ts is imported by main.ts and tests only");
}

function checkFolder(one, file, specifier) {
  if (layerOfPackage(one) !== "app") return;
  const folder = folderOf(one, file.path);
  const rule = FOLDERS[folder];
  if (!rule) return;
  const isRelative = specifier.startsWith(".");
  const target = isRelative ? folderOf(one, join(dirname(file.path), specifier)) : undefined;
  const isWrongFolder =
    isRelative && (rule.onlyFolders ? !rule.onlyFolders.includes(target) : rule.notFolders.includes(target));
  if (isWrongFolder || rule.specifier(specifier, layerOf)) report(file.path, `imports ${specifier}; ${rule.why}`);
}

function checkClosedModule(one, file, specifier) {
  if (!specifier.startsWith(".")) return;
  const target = join(dirname(file.path), specifier);
  const [from, to] = [closedModuleOf(one, file.path), closedModuleOf(one, target)];
  if (from === to) return;
  if (from !== undefined && folderOf(one, target) !== "gen")
    report(file.path, `imports ${specifier}; ${from}/ imports nothing else of its app`);
  if (to !== undefined && target !== `${one.dir}/src/${to}/index.ts`)
    report(file.path, `imports ${specifier}; of ${to}/ the rest of the app imports index.ts only`);
}

function checkModule(one, file, specifier) {
  const modules = MODULES[one.dir] ?? {};
  const module = moduleOf(one, file.path);
  if (!(module in modules) || !specifier.startsWith(".")) return;
  const target = moduleOf(one, join(dirname(file.path), specifier));
  if (target !== module && target !== "gen" && !modules[module].includes(target))
    report(file.path, `imports ${specifier}; the module ${module} may import ${modules[module].join(", ") || "none"}`);
}

/** Returns the folder directly below src/ that contains a path; "" for files of src/ itself. */
function moduleOf(one, path) {
  const [src, folder] = path.split("/").slice(one.dir.split("/").length, -1);
  return src === "src" ? (folder ?? "") : "";
}

function closedModuleOf(one, path) {
  return (CLOSED_MODULES[one.dir] ?? []).find((module) => path.startsWith(`${one.dir}/src/${module}/`));
}

/** Returns the layer folder (a key of FOLDERS, or gen) below src/ or src/<module>/ that contains a path; "" if none. */
function folderOf(one, path) {
  const [src, ...folders] = path.split("/").slice(one.dir.split("/").length, -1);
  if (src !== "src") return "";
  return folders.slice(0, 2).find((folder) => folder in FOLDERS || folder === "gen") ?? "";
}

function checkEnvironment(one, file) {
  const mayRead =
    file.isTest ||
    one.dir === "apps/system-tests" ||
    layerOfPackage(one) === "test" ||
    /\/(?:main|config)\.ts$/.test(file.path);
  if (mayRead) return;
  if (/\bprocess\s*\.\s*env\b|\bprocess\s*\[/.test(file.code))
    report(file.path, "reads process.env; configuration is read in main.ts and config.ts");
  if (/import\s*\{[^}]*\benv\b[^}]*\}\s*from\s*["'](?:node:)?process["']/.test(file.code))
    report(file.path, "imports env from node:process");
}

/** Reports cycles between packages. Imports of tests are ignored. */
function checkPackageCycles() {
  const edges = new Map(
    packages.map((one) => {
      const names = one.files.filter((file) => !file.isTest).flatMap((file) => file.imports.map(packageOf));
      return [one.name, [...new Set(names)].filter((name) => byName.has(name) && name !== one.name).sort()];
    }),
  );
  for (const trail of cyclesOf(edges)) report(byName.get(trail[0]).dir, `import cycle ${trail.join(" → ")}`);
}

/** Reports cycles between files, of type imports too. Tests may import each other's helpers in any order. */
function checkFileCycles() {
  const files = packages.flatMap((one) => one.files).filter((file) => !file.isTest);
  const edges = new Map(
    files.map((file) => [
      file.path,
      file.imports.filter((name) => name.startsWith(".")).map((name) => join(dirname(file.path), name)),
    ]),
  );
  for (const trail of cyclesOf(edges)) report(trail[0], `import cycle ${trail.join(" → ")}`);
}

/** Returns cycles of a graph, each as its path from a node back to it: at least one of every strongly connected part. */
function cyclesOf(edges) {
  const cycles = [];
  const done = new Set();
  const visit = (node, trail) => {
    if (trail.includes(node)) cycles.push([...trail.slice(trail.indexOf(node)), node]);
    else if (!done.has(node)) {
      for (const next of edges.get(node) ?? []) visit(next, [...trail, node]);
      done.add(node);
    }
  };
  for (const node of edges.keys()) visit(node, []);
  return cycles;
}

/**
 * Rejects imports that violate the architecture of this repository. Prints one line per violation; exit code 1 if there
 * is any.
 *
 *   node tools/checks/boundaries.mjs [root]
 *
 * Layers (tags in package.json): app → runtime, base · runtime → runtime, base · base → base · test → runtime, base.
 * Apps never import apps, except that standalone and admin may import each app's /compose and /config, and system-tests
 * standalone. Only tests import layer:test. Cycles of packages and of files are rejected, of type imports too. Relative
 * imports stay within their package. Tools import libraries and /compose and /config of apps, and no test support.
 * Folders inside an app: see FOLDERS. Modules inside an app: see MODULES and
 * CLOSED_MODULES.
 */
import { readFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { packageOf, readPackages, readTools } from "../workspace/packages.mjs";

const LAYERS = {
  app: ["runtime", "base"],
  runtime: ["runtime", "base"],
  base: ["base"],
  test: ["runtime", "base"],
};

/** `@bufbuild/protobuf` itself is allowed: its JSON types are used for open objects everywhere. */
const PROTO = /^@millwright\/contracts|^@bufbuild\/protobuf\/|^@connectrpc\//;
const PRISMA = /^@prisma\/|\/gen\/prisma\b|prisma-client/;
const IO_PACKAGES = /^(?:pg|koa|undici|nats|pino)(?:\/|$)|^@koa\//;
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
      IO_PACKAGES.test(name) ||
      NOT_FOR_RULES.test(name) ||
      layerOf(name) === "runtime" ||
      (name.startsWith("node:") && !PURE_NODE.has(name)),
    onlyFolders: ["domain"],
    why: "domain/ is pure: other domain files and pure base libraries only",
  },
  usecases: {
    specifier: (name) => PROTO.test(name) || PRISMA.test(name) || IO_PACKAGES.test(name) || name === "@millwright/rpc",
    notFolders: ["rpc", "routes", "gen"],
    why: "usecases/ may import domain, store and clients, not wire formats",
  },
  store: {
    specifier: () => false,
    notFolders: ["usecases", "rpc", "routes", "clients"],
    why: "store/ sees domain types and the database only",
  },
  clients: {
    specifier: (name) => PRISMA.test(name),
    notFolders: ["rpc", "routes", "store"],
    why: "clients/ may import generated clients and domain types",
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
 * Modules of an app, each with the modules that it may import. Files outside modules import every module. The lists name
 * only modules above, so modules form no cycle.
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

/** The library of test support. Tools use libs/test-platform, which starts whole platforms. */
const TEST_SUPPORT = "@millwright/testing";

/** Apps whose build bundles the packages that they import, so these are development dependencies. */
const BUNDLED = ["apps/console"];

/** Endings that relative imports name. A bundled app also imports what its bundler turns into files. */
const ENDINGS = /\.(?:ts|json|mjs)$/;
const BUNDLED_ENDINGS = /\.(?:tsx?|css|svg)$/;

/** Packages that are provided by another declared package. */
const PROVIDED = { "@jest/globals": "jest" };

const root = resolve(process.argv[2] ?? join(import.meta.dirname, "../.."));
const rootManifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const packages = readPackages(root);
const byName = new Map(packages.map((pkg) => [pkg.name, pkg]));
/** @type {string[]} */
const violations = [];
const report = (path, text) => violations.push(`${path}: ${text}`);

const layerOfPackage = (pkg) => {
  const tags = (pkg.manifest.nx?.tags ?? []).filter((tag) => tag.startsWith("layer:"));
  return tags.length === 1 ? tags[0].slice("layer:".length) : undefined;
};
const layerOf = (name) => {
  const found = byName.get(packageOf(name));
  return found && layerOfPackage(found);
};

for (const pkg of packages) {
  checkManifest(pkg);
  for (const file of pkg.files) {
    for (const specifier of file.imports) checkImport(pkg, file, specifier);
    checkEnvironment(pkg, file);
  }
}
for (const file of readTools(root).filter(({ isTest }) => !isTest))
  for (const specifier of file.imports) checkTool(file, specifier);
checkPackageCycles();
checkFileCycles();

for (const violation of violations.sort()) console.error(violation);
if (violations.length > 0) process.exitCode = 1;

function checkManifest(pkg) {
  const layer = layerOfPackage(pkg);
  const isApp = pkg.dir.startsWith("apps/");
  if (layer === undefined || !(layer in LAYERS)) report(`${pkg.dir}/package.json`, "needs exactly one known layer tag");
  else if (isApp !== (layer === "app"))
    report(`${pkg.dir}/package.json`, `layer:${layer} does not belong in ${isApp ? "apps/" : "libs/"}`);
  for (const name of Object.keys({ ...pkg.manifest.dependencies, ...pkg.manifest.devDependencies })) {
    if (!byName.has(name)) report(`${pkg.dir}/package.json`, `third-party ${name} is declared in the root only`);
  }
}

function checkImport(pkg, file, specifier) {
  if (specifier.startsWith(".")) checkRelative(pkg, file, specifier);
  else if (byName.has(packageOf(specifier))) checkInternal(pkg, file, specifier);
  else if (!specifier.startsWith("node:")) checkThirdParty(pkg, file, packageOf(specifier));
  if (!file.isTest) {
    checkFolder(pkg, file, specifier);
    checkClosedModule(pkg, file, specifier);
    checkModule(pkg, file, specifier);
  }
}

function checkInternal(pkg, file, specifier) {
  const name = packageOf(specifier);
  const [from, to] = [layerOfPackage(pkg), layerOf(name)];
  if (name === pkg.name) {
    if (!file.isTest) report(file.path, `imports its own package by name (${specifier})`);
    return;
  }
  if (to === "app") {
    const isComposition = COMPOSERS.includes(pkg.dir) && [`${name}/compose`, `${name}/config`].includes(specifier);
    const isJourney = pkg.dir === "apps/system-tests" && name === "@millwright/standalone";
    if (!isComposition && !isJourney) report(file.path, `imports the app ${specifier}`);
  } else if (to === "test") {
    if (!file.isTest && from !== "test") report(file.path, `imports ${name}, which is for tests`);
  } else if (from !== undefined && to !== undefined && !(LAYERS[from] ?? []).includes(to)) {
    report(file.path, `layer:${from} must not import layer:${to} (${specifier})`);
  }
}

function checkTool(file, specifier) {
  const name = packageOf(specifier);
  const isEntry = [`${name}/compose`, `${name}/config`].includes(specifier);
  if (specifier.startsWith(".")) {
    if (!resolve(root, dirname(file.path), specifier).startsWith(resolve(root, "tools") + sep))
      report(file.path, `leaves tools/ (${specifier}); import the package by name`);
  } else if (layerOf(name) === "app" && !isEntry)
    report(file.path, `imports ${specifier}; tools import /compose and /config of apps only`);
  else if (name === TEST_SUPPORT) report(file.path, `imports ${name}, which is for tests`);
}

function checkThirdParty(pkg, file, name) {
  const declared = PROVIDED[name] ?? name;
  if (declared in (rootManifest.dependencies ?? {})) return;
  if (!(declared in (rootManifest.devDependencies ?? {})))
    report(file.path, `imports ${name}, which the root does not declare`);
  else if (!file.isTest && layerOfPackage(pkg) !== "test" && !BUNDLED.includes(pkg.dir))
    report(file.path, `imports ${name}, a development dependency, outside tests`);
}

function checkRelative(pkg, file, specifier) {
  const target = resolve(root, dirname(file.path), specifier);
  if (!target.startsWith(resolve(root, pkg.dir) + sep)) report(file.path, `leaves its package (${specifier})`);
  else if (!(BUNDLED.includes(pkg.dir) ? BUNDLED_ENDINGS : ENDINGS).test(specifier))
    report(file.path, `relative imports name the file with its ending (${specifier})`);
  const isCompose = target === resolve(root, pkg.dir, "src/compose.ts");
  const mayCompose = file.isTest || /\/main\.ts$/.test(file.path) || pkg.dir === "apps/standalone";
  if (isCompose && !mayCompose) report(file.path, "compose.ts is imported by main.ts and tests only");
}

function checkFolder(pkg, file, specifier) {
  if (layerOfPackage(pkg) !== "app") return;
  const folder = folderOf(pkg, file.path);
  const rule = FOLDERS[folder];
  if (!rule) return;
  const isRelative = specifier.startsWith(".");
  const target = isRelative ? folderOf(pkg, join(dirname(file.path), specifier)) : undefined;
  const isWrongFolder =
    isRelative && (rule.onlyFolders ? !rule.onlyFolders.includes(target) : rule.notFolders.includes(target));
  if (isWrongFolder || rule.specifier(specifier, layerOf)) report(file.path, `imports ${specifier}; ${rule.why}`);
}

function checkClosedModule(pkg, file, specifier) {
  if (!specifier.startsWith(".")) return;
  const target = join(dirname(file.path), specifier);
  const [from, to] = [closedModuleOf(pkg, file.path), closedModuleOf(pkg, target)];
  if (from === to) return;
  if (from !== undefined && folderOf(pkg, target) !== "gen")
    report(file.path, `imports ${specifier}; ${from}/ imports nothing else of its app`);
  if (to !== undefined && target !== `${pkg.dir}/src/${to}/index.ts`)
    report(file.path, `imports ${specifier}; of ${to}/ the rest of the app imports index.ts only`);
}

function checkModule(pkg, file, specifier) {
  const modules = MODULES[pkg.dir] ?? {};
  const module = moduleOf(pkg, file.path);
  if (!(module in modules) || !specifier.startsWith(".")) return;
  const target = moduleOf(pkg, join(dirname(file.path), specifier));
  if (target !== module && target !== "gen" && !modules[module].includes(target))
    report(file.path, `imports ${specifier}; the module ${module} may import ${modules[module].join(", ") || "none"}`);
}

/** Returns the folder directly below src/ that contains a path; "" for files of src/ itself. */
function moduleOf(pkg, path) {
  const [src, folder] = path.split("/").slice(pkg.dir.split("/").length, -1);
  return src === "src" ? (folder ?? "") : "";
}

function closedModuleOf(pkg, path) {
  return (CLOSED_MODULES[pkg.dir] ?? []).find((module) => path.startsWith(`${pkg.dir}/src/${module}/`));
}

/** Returns the layer folder (a key of FOLDERS, or gen) below src/ or src/<module>/ that contains a path; "" if none. */
function folderOf(pkg, path) {
  const [src, ...folders] = path.split("/").slice(pkg.dir.split("/").length, -1);
  if (src !== "src") return "";
  return folders.slice(0, 2).find((folder) => folder in FOLDERS || folder === "gen") ?? "";
}

function checkEnvironment(pkg, file) {
  const mayRead =
    file.isTest ||
    pkg.dir === "apps/system-tests" ||
    layerOfPackage(pkg) === "test" ||
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
    packages.map((pkg) => {
      const names = pkg.files.filter((file) => !file.isTest).flatMap((file) => file.imports.map(packageOf));
      return [pkg.name, [...new Set(names)].filter((name) => byName.has(name) && name !== pkg.name).sort()];
    }),
  );
  for (const trail of cyclesOf(edges)) report(byName.get(trail[0]).dir, `import cycle ${trail.join(" → ")}`);
}

/** Reports cycles between files, of type imports too. Tests may import each other's helpers in any order. */
function checkFileCycles() {
  const files = packages.flatMap((pkg) => pkg.files).filter((file) => !file.isTest);
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

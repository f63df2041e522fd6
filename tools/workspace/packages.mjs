import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * @typedef {{ path: string, isTest: boolean, imports: string[], code: string }} SourceFile
 *   `path` from the root; `imports` as written; `code` without comments
 * @typedef {{ name: string, dir: string, manifest: any, files: SourceFile[] }} Package
 */

/**
 * Returns all workspace packages with their TypeScript files, without generated code.
 * @param {string} root @returns {Package[]}
 */
export function readPackages(root) {
  return ["apps", "libs"]
    .flatMap((group) => children(join(root, group)).map((name) => `${group}/${name}`))
    .filter((dir) => existsSync(join(root, dir, "package.json")))
    .sort()
    .map((dir) => {
      const manifest = JSON.parse(readFileSync(join(root, dir, "package.json"), "utf8"));
      const paths = ["src", "test"].flatMap((folder) => sourceFiles(join(root, dir, folder), /\.tsx?$/));
      return { name: manifest.name, dir, manifest, files: paths.sort().map((path) => readSource(root, path)) };
    });
}

/**
 * Returns the TypeScript and JavaScript files below tools/. Tests are those of tools, and the setup of the test runner.
 * @param {string} root @returns {SourceFile[]}
 */
export const readTools = (root) =>
  sourceFiles(join(root, "tools"), /\.(?:ts|mjs)$/)
    .sort()
    .map((path) => readSource(root, path));

/**
 * Returns the package of a specifier: "@scope/name/sub" → "@scope/name", "name/sub" → "name".
 * @param {string} specifier
 */
export const packageOf = (specifier) =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

/** @param {string} root @param {string} path @returns {SourceFile} */
function readSource(root, path) {
  const code = withoutComments(readFileSync(path, "utf8"));
  const local = relative(root, path);
  const isTest = local.endsWith(".test.ts") || /^(?:(?:apps|libs)\/[^/]+\/test|tools\/jest)\//.test(local);
  return { path: local, isTest, imports: [...new Set(importsOf(code))], code };
}

const IMPORT =
  /(?:^|[\s;}])(?:import|export)\s+(?:[\w*{}\s,$]+?\s+from\s+)?["']([^"'\n]+)["']|\bimport\(\s*["']([^"'\n]+)["']\s*\)/g;

/** @param {string} code @returns {string[]} */
const importsOf = (code) => [...code.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? "");

/**
 * Removes whole-line and block comments, which suffices for rules about words. Comments after code remain.
 * @param {string} code
 */
const withoutComments = (code) => code.replaceAll(/^\s*\/\*[^]*?\*\//gm, "").replaceAll(/^\s*\/\/.*$/gm, "");

/** @param {string} dir @param {RegExp} names @returns {string[]} */
function sourceFiles(dir, names) {
  return children(dir).flatMap((name) => {
    const path = join(dir, name);
    if (name === "gen" || name === "node_modules") return [];
    if (names.test(name)) return [path];
    return sourceFiles(path, names);
  });
}

/** @param {string} dir @returns {string[]} */
function children(dir) {
  try {
    return readdirSync(dir);
  } catch {
    return []; // the directory is absent or is a file
  }
}

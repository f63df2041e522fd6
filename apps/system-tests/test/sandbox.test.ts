/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { Platform, processesWith } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { ended, eventsOf, runOf, script, waitForEvent, shellOutputs, startRun, succeeded } from "./support/runs.ts";
import { teamOf } from "./support/resources.ts";

let platform: Platform;
let api: Client;

/**
 * Limits low enough that exceeding them harms no machine. The machine determines the mechanism that enforces them;
 * `sandbox_ready` reports it.
 */
const LIMITS = {
  MILLWRIGHT_SANDBOX_MEMORY: "256M",
  MILLWRIGHT_SANDBOX_PROCESSES: "256",
  MILLWRIGHT_SANDBOX_DISK: "64M",
  MILLWRIGHT_SANDBOX_FILE: "16M",
};
const TIMEOUT_MS = 120_000;

beforeAll(async () => {
  platform = await Platform.start({ workers: 1, slots: 2, env: { ...LIMITS, MILLWRIGHT_EGRESS_ALLOW: "*" } });
  api = await connect(platform);
}, TIMEOUT_MS);
afterAll(() => platform?.remove());

const shell = (command: string): string => `shell: ${JSON.stringify(command)}`;
const processesOf = (runId: string) => processesWith(`MILLWRIGHT_RUN_ID=${runId}`);

/** Expects that the run was ended by a limit: checks its status, its events and its processes. */
async function endedBy(runId: string, cause: string, resource: string): Promise<void> {
  const run = await ended(api, runId);
  expect([run.state, run.status_message?.error_code, run.status_message?.retryable]).toEqual(["FAILED", cause, false]);
  const events = await eventsOf(api, runId);
  const limits = events.find(({ kind }) => kind === "sandbox_ready").payload.limits;
  expect(["cgroup-v1", "cgroup-v2", "prlimit"]).toContain(limits.enforced_by);
  expect(events.find(({ kind }) => kind === "limit_exceeded")?.payload).toMatchObject({
    reason: cause,
    resource,
    limit: limits[{ memory: "memory_bytes", processes: "processes", disk: "disk_bytes" }[resource]!],
  });
  expect(events.find(({ kind }) => kind === "run_finished")?.payload).toMatchObject({
    state: "FAILED",
    error_code: cause,
    reason: cause,
  });
  await eventually(() => expect(processesOf(runId)).toEqual([]));
  expect((await runOf(api, runId)).is_sandbox_running).toBe(false);
}

describe("a run that exceeds its limits ends FAILED with its cause, and nothing of it remains", () => {
  needs(
    "bwrap",
    "OOM kill of sandbox: a memory bomb",
    async () => {
      const bomb =
        'for i in 1 2 3 4; do node -e "const b = Buffer.alloc(100 << 20, 1); setTimeout(() => b, 30000)" & done; wait';
      await endedBy(await startRun(api, script(shell(bomb), "say: never")), "container_oom", "memory");
    },
    TIMEOUT_MS,
  );

  needs(
    "bwrap",
    "a fork bomb",
    async () => {
      await endedBy(
        await startRun(api, script(shell("for i in $(seq 800); do setsid sleep 30 & done; wait"), "say: never")),
        "process_limit",
        "processes",
      );
    },
    TIMEOUT_MS,
  );

  needs(
    "bwrap",
    "a disk bomb",
    async () => {
      const bomb = "for i in $(seq 60); do head -c 8M /dev/zero > f$i; sync f$i; sleep 0.5; done";
      await endedBy(await startRun(api, script(shell(bomb), "say: never")), "disk_limit", "disk");
    },
    TIMEOUT_MS,
  );

  needs(
    "bwrap",
    "other runs continue",
    async () => {
      const beside = await startRun(api, script(shell("until test -e go; do sleep 0.1; done; echo still here")));
      await waitForEvent(api, beside, ({ kind }) => kind === "tool_start");
      await endedBy(
        await startRun(api, script(shell("for i in $(seq 800); do sleep 30 & done; wait"))),
        "process_limit",
        "processes",
      );
      expect((await runOf(api, beside)).state).toBe("INPROGRESS");
      await api.post(`/agent/runs/${beside}/cancel`);
      await eventually(() => expect(processesOf(beside)).toEqual([]));
    },
    TIMEOUT_MS,
  );
});

needs(
  "bwrap",
  "a daemon that left its session and its group ends with its run",
  async () => {
    const id = await startRun(
      api,
      script(
        shell("(setsid nohup sleep 600 >/dev/null 2>&1 &) ; (env -i setsid sleep 601 >/dev/null 2>&1 &); echo left"),
      ),
    );
    await succeeded(api, id);
    await eventually(() => expect(processesOf(id)).toEqual([]));
    expect(processesWith("sleep\x00601")).toEqual([]);
  },
  TIMEOUT_MS,
);

needs(
  "bwrap",
  "one run sees nothing of another: neither its files nor its processes",
  async () => {
    const owner = await startRun(api, script(shell("echo canary > canary-of-another-run; sleep 600")));
    await waitForEvent(api, owner, ({ kind }) => kind === "tool_start");
    const searches = [
      "find / -name 'can*-of-another-run' 2>/dev/null",
      "cat /proc/*/cmdline | tr '\\0' ' ' | grep 'can[a]ry-of'",
      "ls /proc/1/root/workspace /proc/1/cwd/ | grep canary",
      "cat /workspace/../../../*/workspace/can*",
    ];
    const id = await startRun(
      api,
      script(...searches.map((search) => shell(`(${search}) 2>/dev/null | grep . || echo nothing`))),
    );
    await succeeded(api, id);
    expect((await shellOutputs(api, id)).map((output) => output.trim())).toEqual(Array(4).fill("nothing"));
    await api.post(`/agent/runs/${owner}/cancel`);
  },
  TIMEOUT_MS,
);

needs(
  "bwrap",
  "the machine and its network are denied even if all other hosts are allowed, and each denial is an event",
  async () => {
    const url = new URL(platform.url);
    const fetching = (target: string) =>
      shell(
        `/.millwright/node --no-warnings -e "fetch('${target}').then(() => console.log('REACHED'), () => console.log('refused'))"`,
      );
    const id = await startRun(
      api,
      script(
        fetching(`http://127.0.0.1.:${url.port}/healthz`),
        fetching("http://169.254.169.254/latest/meta-data"),
        fetching("http://[::ffff:10.0.0.1]/"),
        fetching("https://127.0.0.2/"),
      ),
    );
    await succeeded(api, id);
    expect((await shellOutputs(api, id)).map((output) => output.trim())).toEqual(Array(4).fill("refused"));
    const denied = (await eventsOf(api, id))
      .filter(({ kind }) => kind === "egress_denied")
      .map(({ payload }) => [payload.host, payload.reason]);
    expect(denied).toEqual(
      expect.arrayContaining([
        ["169.254.169.254", "internal_address"],
        ["127.0.0.2", "internal_address"],
      ]),
    );
    expect(new Set(denied.map(([, reason]) => reason)).has("host_not_allowed")).toBe(false);
  },
  TIMEOUT_MS,
);

needs(
  "bwrap",
  "a secret reaches the agent's tools and no record of the run",
  async () => {
    const secret = "s3cret/of+the team";
    await api.put(`/team/${await teamOf(api)}/secrets/SANDBOX_CANARY`, { value: secret });
    const environment = await api.post("/agent/environments", {
      config: {
        name: "with a secret",
        secrets: [{ name: "SANDBOX_CANARY" }],
        setup_commands: ['echo "setting up with $SANDBOX_CANARY"'],
      },
    });
    const steps = [
      shell(
        'test "$SANDBOX_CANARY" = "s3cret/of+the team" && echo known'.replace(
          "s3cret/of+the team",
          "$(printf 's3cret/of+the'; printf ' team')",
        ),
      ),
      shell(
        'echo "$SANDBOX_CANARY"; printf %s "$SANDBOX_CANARY" | base64; node -p "encodeURIComponent(process.env.SANDBOX_CANARY)"; (printf s3cret/of; sleep 0.2; echo "+the team")',
      ),
      shell('echo x > out.txt; echo "fail: $SANDBOX_CANARY" > output'),
      "artifact: {file: out.txt, title: 'for s3cret/of+the team'}",
      "read: output",
      shell('echo "$SANDBOX_CANARY" >&2; exit 3'),
    ];
    const id = await startRun(api, script(...steps), { config: { environment_id: environment.uid } });
    const { status_message: message, artifacts } = await ended(api, id);
    const outputs = await shellOutputs(api, id);
    expect(outputs[0]?.trim()).toBe("known");
    const transcript = await fetch(
      (await api.call("GET", `/agent/runs/${id}/transcript`)).headers.get("location")!,
    ).then((answer) => answer.text());
    // Text written by a person, such as the prompt and the title derived from it, is not masked.
    const stored = [
      message,
      artifacts,
      ...(await eventsOf(api, id)).filter(({ payload }) => payload?.role !== "user"),
      await api.get(`/agent/runs/${id}/timeline`),
    ].map((one) => JSON.stringify(one));
    expect(artifacts).toMatchObject([{ data: { title: "for ***" } }]);
    for (const spelled of [secret, Buffer.from(secret).toString("base64").slice(0, 20), encodeURIComponent(secret)]) {
      expect([
        spelled,
        outputs.filter((one) => one.includes(spelled)),
        stored.filter((one) => one.includes(spelled)),
      ]).toEqual([spelled, [], []]);
    }
    expect(transcript.split("\n").filter((line) => line.includes(secret) && !line.includes('"user"'))).toEqual([]);
  },
  TIMEOUT_MS,
);
